"""The client to be awaited, which does the work."""

from __future__ import annotations

import asyncio
import os
import tempfile
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

import anyio

from oh_jupyter.client.http import BROKEN, Connection, SentEvents, new_request_id, parsed
from oh_jupyter.errors import KernelNotFoundError, ServerError, WireError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    Event,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    Observation,
)
from oh_jupyter.events.wire import from_wire, observation_from_wire, to_wire


class AsyncRuntimeClient:
    """`RuntimeClient` for an event loop: the same methods, arguments, results and errors.

    A task that is cancelled takes its Action back.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        kernel_id: str | None = None,
        *,
        session_api_key: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """See ``RuntimeClient``."""
        self.kernel_id = kernel_id
        self._connection = Connection(url, token, kernel_id, session_api_key, timeout)

    async def __aenter__(self) -> Self:
        """Begin an ``async with`` block."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close at its end."""
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._connection.close()

    async def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Carry out an Action."""
        wire = to_wire(action) if isinstance(action, Action) else action
        request_id = new_request_id()
        try:
            body = await self._connection.send(
                "POST", "execute_action", json={"action": wire}, request_id=request_id
            )
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._connection.take_back(request_id)
            raise
        return observation_from_wire(parsed(body))

    async def run(self, command: str, timeout: float | None = None, **args: Any) -> Observation:
        """Run a command in the shell."""
        action = CmdRunAction(command, **args)
        if timeout is not None:
            action.set_hard_timeout(timeout)
        return await self.execute(action)

    async def run_ipython(self, code: str, timeout: float | None = None) -> Observation:
        """Run a cell in the kernel."""
        action = IPythonRunCellAction(code)
        action.timeout = timeout
        return await self.execute(action)

    async def read(self, path: str, **args: Any) -> Observation:
        """Read a file."""
        return await self.execute(FileReadAction(path, **args))

    async def write(self, path: str, content: str, **args: Any) -> Observation:
        """Write a file."""
        return await self.execute(FileWriteAction(path, content, **args))

    async def edit(self, command: str, path: str, **args: Any) -> Observation:
        """Have the editor do something."""
        return await self.execute(FileEditAction(path, command=command, **args))

    async def browse(self, url: str) -> Observation:
        """Visit a page."""
        return await self.execute(BrowseURLAction(url))

    async def interact(self, actions: str, return_axtree: bool = False) -> Observation:
        """Act on the page."""
        return await self.execute(BrowseInteractiveAction(actions, return_axtree=return_axtree))

    async def alive(self) -> bool:
        """Ask whether the server answers, and has the kernel; nothing is started."""
        try:
            return bool((await self._get("alive")).get("status") == "ok")
        except (ServerError, KernelNotFoundError):
            return False

    async def server_info(self) -> dict[str, Any]:
        """Ask how the server does."""
        found: dict[str, Any] = await self._get("server_info")
        return found

    async def generation(self) -> str:
        """Ask which runtime it is; another answer later tells that its state is lost."""
        return str((await self._get("events", limit="0"))["generation"])

    async def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine."""
        asked = {} if path is None else {"path": path}
        names: list[str] = parsed(await self._connection.send("POST", "list_files", json=asked))
        return names

    async def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file, or a directory with all that is in it, to the kernel's machine."""
        path = Path(source).resolve()
        recursive = path.is_dir()
        name = f"{path.name}.zip" if recursive else path.name
        with _zipped(path) if recursive else path.open("rb") as opened:
            await self._connection.send(
                "POST",
                "upload_file",
                params={"destination": destination, "recursive": str(recursive).lower()},
                files={"file": (name, opened)},
            )

    async def download(self, path: str, target: str | os.PathLike[str]) -> Path:
        """Fetch a file or directory as a zip file."""
        asked = {"path": path}
        async with self._connection.stream("GET", "download_files", params=asked) as answer:
            with Path(target).open("wb") as sink:
                async for piece in answer.aiter_bytes():
                    sink.write(piece)
        return Path(target)

    async def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations."""
        found = await self._get("events", start_id=str(start), limit=str(limit), whole="true")
        return _known_events(found["events"])

    async def events(self, start: int = 0) -> AsyncGenerator[Event, None]:
        """Follow Actions and Observations: those recorded, then each new one as it comes."""
        sent = SentEvents()
        params = {"start_id": str(start), "whole": "true"}
        while True:
            headers = {"Accept": "text/event-stream"}
            if sent.last:
                headers["Last-Event-ID"] = sent.last
            stream = self._connection.stream("GET", "events", headers=headers, params=params)
            try:
                async with stream as answer:
                    async for line in answer.aiter_lines():
                        for event in sent.feed(line):
                            yield event
            except BROKEN:
                continue

    async def skills(self) -> list[dict[str, str]]:
        """List the agent skills."""
        found: list[dict[str, str]] = await self._get("skills")
        return found

    async def waiting(self) -> list[dict[str, Any]]:
        """List the Actions that wait for a person."""
        found: list[dict[str, Any]] = await self._get("confirmations")
        return found

    async def confirm(
        self, id: int, *, approve: bool = True, why: str = "", for_session: bool = False
    ) -> None:
        """Decide on a waiting Action."""
        decision = {"approve": approve, "why": why, "for_session": for_session}
        await self._connection.send("POST", f"confirmations/{id}", json=decision)

    async def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store."""
        return list((await self._get(f"store/{quote(path)}", list="true"))["entries"])

    async def store_read(self, path: str) -> bytes:
        """Read a file of the store."""
        return await self._connection.send("GET", f"store/{quote(path)}")

    async def store_write(self, path: str, contents: bytes) -> None:
        """Write a file of the store."""
        await self._connection.send("PUT", f"store/{quote(path)}", content=contents)

    async def store_delete(self, path: str) -> None:
        """Delete a file or directory of the store."""
        await self._connection.send("DELETE", f"store/{quote(path)}")

    async def _get(self, path: str, **params: str) -> Any:
        return parsed(await self._connection.send("GET", path, params=params))


def _known_events(wires: list[dict[str, Any]]) -> list[Event]:
    found = []
    for wire in wires:
        try:
            found.append(from_wire(wire))
        except WireError:
            continue  # of a type that a newer runtime knows
    return found


def _zipped(source: Path) -> IO[bytes]:
    """A directory as a zip file, with its own name as the first part of all members."""
    sink = tempfile.TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for parent, directories, files in os.walk(source):
            empty = [] if directories or files else [Path(parent)]
            for path in empty + [Path(parent, name) for name in sorted(files)]:
                archive.write(path, path.relative_to(source.parent))
    sink.seek(0)
    return sink
