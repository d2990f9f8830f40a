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

from oh_jupyter.errors import TransferError, TransferNotFoundError

__all__ = ["PIECE", "Sink", "StoreSink", "Transfers", "store_pieces"]

PIECE = 1024 * 1024
"""Bytes of a piece, about."""

IDLE_SECONDS = 600.0
"""A transfer of which nothing was heard for so long is given up."""


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

    def __init__(self, in_thread: Callable[..., Awaitable[Any]]) -> None:
        """Make an empty table.

        Args:
            in_thread: Runs blocking code beside the loop.
        """
        self._in_thread = in_thread
        self._transfers: dict[str, _Transfer] = {}

    async def begin(self, make: Callable[[], Sink | Iterator[bytes]]) -> str:
        """Begin a transfer.

        Args:
            make: Makes what takes the pieces of an upload, or gives those of a download.

        Returns:
            Its id.

        Raises:
            OhJupyterError: What ``make`` raises.
        """
        made = await self._in_thread(make)
        key = secrets.token_hex(16)
        self._transfers[key] = _Transfer(made)
        self._keep(key)
        return key

    async def write(self, key: str, piece: bytes) -> None:
        """Take a piece of an upload.

        Args:
            key: Its id.
            piece: The bytes.

        Raises:
            TransferError: There is no such upload, or the piece cannot be kept.
        """
        await self._in_thread(self._find(key).write, piece)

    async def read(self, key: str) -> bytes:
        """Give the next piece of a download.

        Args:
            key: Its id.

        Returns:
            The piece; b"" at the end, after which the id is no more.

        Raises:
            TransferError: There is no such download.
        """
        piece: bytes = await self._in_thread(next, self._find(key), b"")
        if not piece:
            await self.end(key)
        return piece

    async def finish(self, key: str) -> None:
        """Put an upload in its place.

        Args:
            key: Its id.

        Raises:
            OhJupyterError: That cannot be done; nothing was changed.
        """
        sink = self._find(key)
        try:
            await self._in_thread(sink.finish)
        finally:
            await self.end(key)

    async def end(self, key: str) -> None:
        """Forget a transfer; nothing happens if there is none of that id.

        Args:
            key: Its id.
        """
        entry = self._transfers.pop(key, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        await self._in_thread(_give_up, entry.transfer)

    def close(self) -> None:
        """Forget all transfers. It blocks: at interpreter exit no pool takes work any more."""
        for key in list(self._transfers):
            entry = self._transfers.pop(key)
            if entry.timer is not None:
                entry.timer.cancel()
            _give_up(entry.transfer)

    def _find(self, key: str) -> Any:
        if key not in self._transfers:
            raise TransferNotFoundError("This transfer is over, or was given up; begin it again")
        self._keep(key)
        return self._transfers[key].transfer

    def _keep(self, key: str) -> None:
        """Start the time anew after which it is given up."""
        entry = self._transfers[key]
        if entry.timer is not None:
            entry.timer.cancel()
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(IDLE_SECONDS, lambda: loop.create_task(self.end(key)))


def _give_up(transfer: Sink | Iterator[bytes]) -> None:
    end = getattr(transfer, "abort", None) or getattr(transfer, "close", None)
    if end is not None:
        end()


class StoreSink:
    """An upload into a file store."""

    def __init__(self, opened: IO[bytes]) -> None:
        """Begin.

        Args:
            opened: A file of the store, opened for writing; closing it puts it in its place.
        """
        self._opened = opened

    def write(self, piece: bytes) -> None:
        """Take the next piece.

        Args:
            piece: The bytes.
        """
        self._opened.write(piece)

    def finish(self) -> None:
        """Put it in its place."""
        self._opened.close()

    def abort(self) -> None:
        """Forget it: a file of a store that is left by an exception does not change."""
        if not self._opened.closed:
            given_up = TransferError("The upload was given up")
            self._opened.__exit__(TransferError, given_up, None)


def store_pieces(opened: IO[bytes]) -> Iterator[bytes]:
    """Read a file of a store.

    Args:
        opened: The file, opened for reading.

    Yields:
        Its pieces.
    """
    with opened:
        while piece := opened.read(PIECE):
            yield piece
