"""The client to be awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

from oh_jupyter.client.calls import Calls, SentEvents
from oh_jupyter.client.connection import BROKEN, AsyncConnection
from oh_jupyter.errors import KernelNotFoundError, ServerError
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

__all__ = ["AsyncRuntimeClient"]


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
        self._calls = Calls(url, token, kernel_id, session_api_key)
        self._connection = AsyncConnection(self._calls, timeout)

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
        request = self._calls.execute(action)
        try:
            return await self._connection.send(request)
        except asyncio.CancelledError:
            await asyncio.shield(self._connection.send(self._calls.cancel(request)))
            raise

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
            return await self._connection.send(self._calls.alive())
        except (ServerError, KernelNotFoundError):
            return False

    async def server_info(self) -> dict[str, Any]:
        """Ask how the server does."""
        return await self._connection.send(self._calls.server_info())

    async def list_files(self, path: str | None = None) -> list[str]:
        """List a directory of the kernel's machine."""
        return await self._connection.send(self._calls.list_files(path))

    async def upload(self, source: str | os.PathLike[str], destination: str) -> None:
        """Copy a file, or a directory with all that is in it, to the kernel's machine."""
        path = Path(source).resolve()
        if path.is_dir():
            with self._calls.zipped(path) as opened:
                await self._connection.send(
                    self._calls.upload(opened, f"{path.name}.zip", destination, True)
                )
            return
        with path.open("rb") as opened:
            await self._connection.send(self._calls.upload(opened, path.name, destination, False))

    async def download(self, path: str, target: str | os.PathLike[str]) -> Path:
        """Fetch a file or directory as a zip file."""
        request = self._calls.download(path)
        with Path(target).open("wb") as sink:
            async with self._connection.stream(request) as answer:
                async for piece in answer.aiter_bytes():
                    sink.write(piece)
        return Path(target)

    async def history(self, start: int = 0, limit: int = 1000) -> list[Event]:
        """List recorded Actions and Observations."""
        return await self._connection.send(self._calls.history(start, limit))

    async def events(self, start: int = 0) -> AsyncIterator[Event]:
        """Follow Actions and Observations: those recorded, then each new one as it comes."""
        sent = SentEvents()
        while True:
            try:
                async with self._connection.stream(self._calls.watch(start, sent.last)) as answer:
                    async for line in answer.aiter_lines():
                        for event in sent.feed(line):
                            yield event
            except BROKEN:
                continue

    async def skills(self) -> list[dict[str, str]]:
        """List the agent skills."""
        return await self._connection.send(self._calls.skills())

    async def waiting(self) -> list[dict[str, Any]]:
        """List the Actions that wait for a person."""
        return await self._connection.send(self._calls.waiting())

    async def confirm(self, id: int, *, approve: bool = True) -> None:
        """Decide on a waiting Action."""
        await self._connection.send(self._calls.confirm(id, approve))

    async def store_list(self, path: str = "") -> list[str]:
        """List a directory of the file store."""
        return await self._connection.send(self._calls.store_list(path))

    async def store_read(self, path: str) -> bytes:
        """Read a file of the store."""
        return await self._connection.send(self._calls.store("GET", path))

    async def store_write(self, path: str, contents: bytes) -> None:
        """Write a file of the store."""
        await self._connection.send(self._calls.store("PUT", path, contents))

    async def store_delete(self, path: str) -> None:
        """Delete a file or directory of the store."""
        await self._connection.send(self._calls.store("DELETE", path))
