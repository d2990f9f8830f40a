"""The asynchronous client, which implements and documents all methods."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

import anyio

from oh_jupyter.client.http import BROKEN, EventReader, HttpConnection, new_request_id, parsed
from oh_jupyter.errors import (
    KernelNotFoundError,
    ServerError,
    TransferError,
    TransferTooLargeError,
    WireError,
)
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
    """A runtime in a Jupyter kernel, reached from an event loop.

    It has the methods of ``RuntimeClient``. Cancelling a task cancels its Action.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        kernel_id: str | None = None,
        *,
        session_api_key: str | None = None,
        timeout: float = 10.0,
        client_name: str = "",
    ) -> None:
        """Take the arguments of ``RuntimeClient``."""
        self.kernel_id = kernel_id
        self._connection = HttpConnection(
            url, token, kernel_id, session_api_key, timeout, client_name
        )

    async def __aenter__(self) -> Self:
        """Enter an ``async with`` block."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Execute an Action.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            OhJupyterError: The server or the kernel rejected it; the error raised there.
            ServerError: The server cannot be reached.
        """
        wire = to_wire(action) if isinstance(action, Action) else action
        request_id = new_request_id()
        try:
            body = await self._connection.send(
                "POST", "execute_action", json={"action": wire}, request_id=request_id
            )
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._connection.cancel(request_id)
            raise
        return observation_from_wire(parsed(body))

    async def run(self, /, command: str, timeout: float | None = None, **args: Any) -> Observation:
        """Run a command in the shell.

        Args:
            command: The command.
            timeout: Hard limit in seconds.
            **args: Other arguments of ``CmdRunAction``.

        Returns:
            The Observation.
        """
        action = CmdRunAction(command, **args)
        if timeout is not None:
            action.set_hard_timeout(timeout)
        return await self.execute(action)

    async def run_ipython(self, code: str, timeout: float | None = None) -> Observation:
        """Run a cell in the kernel.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            The Observation.
        """
        action = IPythonRunCellAction(code)
        action.timeout = timeout
        return await self.execute(action)

    async def run_cell(self, /, code: str, timeout: float | None = None) -> list[dict[str, Any]]:
        """Run a numbered cell in the kernel, and return its outputs one by one.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            Streams, results and errors, each with its ``type``, as E2B's code interpreter has them.

        Raises:
            TimeoutError: It was interrupted after its time limit.
            ServerError: The connection broke; the cell was interrupted.
        """
        body = {"code": code}
        try:
            async with (
                asyncio.timeout(timeout),
                self._connection.stream("POST", "e2b/execute", json=body) as response,
            ):
                return [json.loads(line) async for line in response.aiter_lines()]
        except TimeoutError:
            raise TimeoutError(f"The cell was interrupted after {timeout:g} seconds") from None
        except BROKEN as error:
            raise ServerError(f"The connection broke while a cell ran: {error}") from error

    async def read(self, /, path: str, **args: Any) -> Observation:
        """Read a file.

        Args:
            path: The file.
            **args: Other arguments of ``FileReadAction``.

        Returns:
            The Observation.
        """
        return await self.execute(FileReadAction(path, **args))

    async def write(self, /, path: str, content: str, **args: Any) -> Observation:
        """Write a file.

        Args:
            path: The file.
            content: Its text.
            **args: Other arguments of ``FileWriteAction``.

        Returns:
            The Observation.
        """
        return await self.execute(FileWriteAction(path, content, **args))

    async def edit(self, /, command: str, path: str, **args: Any) -> Observation:
        """Run a command of the editor.

        Args:
            command: A command of the editor, such as ``str_replace``.
            path: The file.
            **args: Other arguments of ``FileEditAction``.

        Returns:
            The Observation.
        """
        return await self.execute(FileEditAction(path, command=command, **args))

    async def browse(self, url: str) -> Observation:
        """Visit a page.

        Args:
            url: Its address.

        Returns:
            The Observation.
        """
        return await self.execute(BrowseURLAction(url))

    async def interact(self, actions: str, return_axtree: bool = False) -> Observation:
        """Act on the page.

        Args:
            actions: Browser actions, such as ``click('12')``, one a line.
            return_axtree: Return the tree as data, too.

        Returns:
            The Observation.
        """
        return await self.execute(BrowseInteractiveAction(actions, return_axtree=return_axtree))

    async def alive(self) -> bool:
        """Return whether the server responds and has the kernel; start nothing.

        Returns:
            True if both are there.
        """
        try:
            return bool((await self._get("alive")).get("status") == "ok")
        except (ServerError, KernelNotFoundError):
            return False

    async def server_info(self) -> dict[str, Any]:
        """Return figures of the server and the runtime.

        Returns:
            Uptime, idle time and resources of the server, and the runtime's own figures.
        """
        info: dict[str, Any] = await self._get("server_info")
        return info

    async def generation(self) -> str:
        """Return the id of the runtime; it changes when its state is lost.

        Returns:
            Its id.

        Raises:
            ExtensionMissingError: The kernel has none, because it has not been used yet.
        """
        return str((await self._get("events", limit="0"))["generation"])

    async def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine.

        Args:
            path: The directory; None for the workspace.

        Returns:
            Names; those of directories end in a slash.
        """
        body = {} if path is None else {"path": path}
        names: list[str] = parsed(await self._connection.send("POST", "list_files", json=body))
        return names

    async def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file or a whole directory to the kernel's machine.

        Args:
            source: What to copy.
            destination: Absolute path of the target directory.

        Raises:
            TransferError: It cannot be stored there.
            OSError: The source cannot be read.
        """
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
        """Fetch a file or directory as a zip file.

        Args:
            path: Absolute path on the kernel's machine.
            target: The zip file to write.

        Returns:
            The target.

        Raises:
            TransferError: The path does not exist, or cannot be read.
        """
        stream = self._connection.stream("GET", "download_files", params={"path": path})
        async with stream as response:
            with Path(target).open("wb") as sink:
                async for piece in response.aiter_bytes():
                    sink.write(piece)
        return Path(target)

    async def read_bytes(self, /, path: str, max_bytes: int | None = None) -> bytes:
        """Fetch a file of the kernel's machine as it is.

        Args:
            path: Its absolute path.
            max_bytes: Size above which the file is refused; None for any size.

        Returns:
            Its contents.

        Raises:
            TransferError: The path does not exist, is a directory, or cannot be read.
            TransferTooLargeError: The file is larger than ``max_bytes``.
        """
        contents = io.BytesIO()
        await self.read_into(path, contents, max_bytes)
        return contents.getvalue()

    async def read_into(self, /, path: str, sink: IO[bytes], max_bytes: int | None = None) -> None:
        """Fetch a file of the kernel's machine as it is, piece by piece.

        Args:
            path: Its absolute path.
            sink: Open file that receives the contents; after an error it has a part of them.
            max_bytes: Size above which the file is refused; None for any size.

        Raises:
            TransferError: The path does not exist, is a directory, or cannot be read.
            TransferTooLargeError: The file is larger than ``max_bytes``.
        """
        size = 0
        async with self._connection.stream("GET", "view", params={"path": path}) as response:
            try:
                async for piece in response.aiter_bytes():
                    size += len(piece)
                    if max_bytes is not None and size > max_bytes:
                        raise TransferTooLargeError(f"{path} is larger than {max_bytes} bytes")
                    sink.write(piece)
            except BROKEN as error:
                raise TransferError(f"{path} was only read in part: {error}. Try again") from error

    async def write_bytes(
        self, /, path: str, contents: bytes | IO[bytes], within: str | None = None
    ) -> None:
        """Store a file on the kernel's machine as it is; it cannot be undone.

        Args:
            path: Its absolute path; missing directories are created.
            contents: The contents, or an open file, which is streamed.
            within: Directory outside of which the file must not be; links are resolved, and a
                relative directory starts at the workspace. None for any file.

        Raises:
            TransferError: It cannot be stored there.
        """
        destination, _, name = path.rpartition("/")
        limit = {} if within is None else {"within": within}
        await self._connection.send(
            "POST",
            "upload_file",
            params={"destination": destination or "/", "exact": "true", **limit},
            files={"file": (name, contents)},
        )

    async def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations.

        Args:
            start: Id of the first.
            limit: Maximum number.

        Returns:
            The events.
        """
        log = await self._get("events", start_id=str(start), limit=str(limit), whole="true")
        return _known_events(log["events"])

    async def events(self, start: int = 0) -> AsyncGenerator[Event, None]:
        """Yield recorded Actions and Observations, then each new one.

        Continues after a broken connection, and with the events of a restarted kernel.

        Args:
            start: Id of the first.

        Yields:
            The events.

        Raises:
            ServerError: The kernel is gone.
        """
        reader = EventReader()
        params = {"start_id": str(start), "whole": "true"}
        while True:
            headers = {"Accept": "text/event-stream"}
            if reader.last_id:
                headers["Last-Event-ID"] = reader.last_id
            stream = self._connection.stream("GET", "events", headers=headers, params=params)
            try:
                async with stream as response:
                    async for line in response.aiter_lines():
                        for event in reader.feed(line):
                            yield event
            except BROKEN:
                continue

    async def skills(self) -> list[dict[str, str]]:
        """List the agent skills.

        Returns:
            Name, signature and docstring of each.
        """
        skills: list[dict[str, str]] = await self._get("skills")
        return skills

    async def waiting(self) -> list[dict[str, Any]]:
        """List the Actions that wait for a person.

        Returns:
            Id, message, reasons, diff of an edit, remaining seconds, and whether it would be
            sandboxed, of each.
        """
        waiting: list[dict[str, Any]] = await self._get("confirmations")
        return waiting

    async def confirm(
        self,
        id: int,
        *,
        approve: bool = True,
        why: str = "",
        for_session: bool = False,
        for_workspace: bool = False,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Decide on a waiting Action, or answer an agent's question.

        Args:
            id: Its id.
            approve: Whether it may start.
            why: Reason of a rejection, for the agent.
            for_session: Also approve later Actions of its type that wait for the same reasons.
            for_workspace: The same, in all later sessions in the kernel's workspace.
            values: Answers by the names of the question's form.

        Raises:
            ConfirmationError: It is not waiting.
            ServerError: 403: approval over REST needs the server's ``confirmation_over_rest``;
                rejecting is always possible.
        """
        decision = {
            "approve": approve,
            "why": why,
            "for_session": for_session,
            "for_workspace": for_workspace,
            "values": values,
        }
        await self._connection.send("POST", f"confirmations/{id}", json=decision)

    async def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store.

        Args:
            path: The directory.

        Returns:
            Paths; those of directories end in a slash.
        """
        return list((await self._get(f"store/{quote(path)}", list="true"))["entries"])

    async def store_read(self, path: str) -> bytes:
        """Read a file of the store.

        Args:
            path: The file.

        Returns:
            Its contents.

        Raises:
            TransferNotFoundError: The file does not exist.
        """
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
    events = []
    for wire in wires:
        with suppress(WireError):  # of a newer runtime's type
            events.append(from_wire(wire))
    return events


def _zipped(source: Path) -> IO[bytes]:
    """Zip a directory; its own name is the first part of all members."""
    sink = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for parent, directories, files in os.walk(source):
            empty = [] if directories or files else [Path(parent)]
            for path in empty + [Path(parent, name) for name in sorted(files)]:
                archive.write(path, path.relative_to(source.parent))
    sink.seek(0)
    return sink
