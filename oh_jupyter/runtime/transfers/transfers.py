"""Uploads and downloads under way: each is a number of requests, and this ties them together.

Contents travel in pieces, so no file is ever in memory as a whole, neither here nor in the
server, and the way is the same to a kernel on another machine.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.runtime.transfers.downloads import PIECE_BYTES, check_source, zipped
from oh_jupyter.runtime.transfers.uploads import Upload

IDLE_SECONDS = 600.0
"""A transfer of which nothing was heard for so long is ended."""


class Sink(Protocol):
    """Where an upload goes. Its methods block."""

    def write(self, piece: bytes) -> None:
        """Take the next piece."""

    def finish(self) -> None:
        """All pieces were there: put them in their place."""

    def abort(self) -> None:
        """Forget it all; may be called at any time, also twice."""


@dataclass
class _Transfer:
    transfer: Sink | Iterator[bytes]
    timer: asyncio.TimerHandle | None = None


class Transfers:
    """The uploads and downloads of one runtime. Its methods run on the runtime's loop."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        *,
        max_upload_bytes: int,
        owner: tuple[int, int] | None,
    ) -> None:
        """Begin with none; what is uploaded belongs to the owner (user and group id)."""
        self._in_thread = in_thread
        self._max_upload_bytes = max_upload_bytes
        self._owner = owner
        self._transfers: dict[str, _Transfer] = {}

    async def upload(self, destination: str, filename: str, *, recursive: bool) -> str:
        """Begin an upload to the machine, as ``Upload`` does; its id."""

        def make() -> Upload:
            return Upload(
                destination,
                filename,
                recursive=recursive,
                max_bytes=self._max_upload_bytes,
                owner=self._owner,
            )

        return await self.begin(make)

    async def download(self, path: str) -> tuple[str, str]:
        """Begin a download from the machine, as a zip file; its id, and the name of the source."""
        source = await self._in_thread(check_source, path)
        return await self.begin(lambda: zipped(source)), source.name or "root"

    async def begin(self, make: Callable[[], Sink | Iterator[bytes]]) -> str:
        """Begin a transfer; its id.

        ``make``, called in a thread, makes what takes the pieces of an upload or gives those of
        a download.
        """
        made = await self._in_thread(make)
        key = secrets.token_hex(16)
        self._transfers[key] = _Transfer(made)
        self._postpone_end(key)
        return key

    async def write(self, key: str, piece: bytes) -> None:
        """Take a piece of an upload; a TransferError if it cannot be kept."""
        await self._in_thread(self._find(key).write, piece)

    async def read(self, key: str) -> bytes:
        """The next piece of a download; b"" at the end, after which the id is no more."""
        piece: bytes = await self._in_thread(next, self._find(key), b"")
        if not piece:
            await self.end(key)
        return piece

    async def finish(self, key: str) -> None:
        """Put an upload in its place; on an OhJupyterError nothing was changed."""
        sink = self._find(key)
        try:
            await self._in_thread(sink.finish)
        finally:
            await self.end(key)

    async def end(self, key: str) -> None:
        """Forget a transfer; nothing happens if there is none of that id."""
        entry = self._transfers.pop(key, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        await self._in_thread(_abort, entry.transfer)

    def close(self) -> None:
        """Forget all transfers. It blocks: at interpreter exit no pool takes work any more."""
        for key in list(self._transfers):
            entry = self._transfers.pop(key)
            if entry.timer is not None:
                entry.timer.cancel()
            _abort(entry.transfer)

    def _find(self, key: str) -> Any:
        if key not in self._transfers:
            raise TransferNotFoundError("This transfer is over, or was given up; begin it again")
        self._postpone_end(key)
        return self._transfers[key].transfer

    def _postpone_end(self, key: str) -> None:
        entry = self._transfers[key]
        if entry.timer is not None:
            entry.timer.cancel()
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(IDLE_SECONDS, lambda: run_in_background(self.end(key)))


def _abort(transfer: Sink | Iterator[bytes]) -> None:
    end = getattr(transfer, "abort", None) or getattr(transfer, "close", None)
    if end is not None:
        end()


class StoreSink:
    """An upload into a file of a store that is open for writing; closing it puts it in place."""

    def __init__(self, begin: Callable[[], IO[bytes]]) -> None:
        """Open the file; a TransferError if it cannot be written."""
        try:
            self._opened = begin()
        except OSError as problem:
            raise _unwritable(problem) from None

    def write(self, piece: bytes) -> None:
        """Take the next piece; a TransferError if it cannot be written."""
        try:
            self._opened.write(piece)
        except OSError as problem:
            raise _unwritable(problem) from None

    def finish(self) -> None:
        """Put it in its place; a TransferError if it cannot be written."""
        try:
            self._opened.close()
        except OSError as problem:
            raise _unwritable(problem) from None

    def abort(self) -> None:
        """Forget it: a file of a store that is left by an exception does not change."""
        if not self._opened.closed:
            given_up = TransferError("The upload was given up")
            self._opened.__exit__(TransferError, given_up, None)


def _unwritable(problem: OSError) -> TransferError:
    return TransferError(f"The store cannot be written: {problem.strerror or problem}")


def store_pieces(opened: IO[bytes]) -> Iterator[bytes]:
    """The pieces of a file of a store that is open for reading."""
    with opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece
