"""Uploads and downloads in progress, each spread over several requests.

Contents travel in pieces, so neither kernel nor server ever holds a whole file in memory, and a
kernel on another machine works the same way.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Protocol

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.runtime.file_rules import unwritable
from oh_jupyter.runtime.transfers.downloads import PIECE_BYTES, check_source, zipped
from oh_jupyter.runtime.transfers.uploads import Approve, HeldUpload, Upload, UploadTarget

IDLE_SECONDS = 600.0
"""Time after which an idle transfer is ended."""


class Sink(Protocol):
    """Target of an upload; its methods block."""

    def write(self, piece: bytes) -> None:
        """Write the next piece."""

    def finish(self) -> None:
        """Put the complete contents in place."""

    def abort(self) -> None:
        """Discard everything; may be called at any time and repeatedly."""


@dataclass
class _Transfer:
    transfer: Sink | Iterator[bytes]
    timer: asyncio.TimerHandle | None = None


class Transfers:
    """Uploads and downloads of one runtime. Its methods run on the runtime's loop."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        *,
        max_upload_bytes: int,
        owner: tuple[int, int] | None,
    ) -> None:
        """Start empty; uploaded files belong to the owner (user and group id)."""
        self._in_thread = in_thread
        self._max_upload_bytes = max_upload_bytes
        self._owner = owner
        self._transfers: dict[str, _Transfer] = {}

    async def upload(
        self,
        destination: str,
        filename: str,
        *,
        recursive: bool,
        exact: bool = False,
        approve: Approve | None = None,
    ) -> str:
        """Start an ``Upload`` to the machine; return its id.

        With ``approve`` nothing is changed before that is awaited with all paths.
        """
        target = UploadTarget.parse(destination, filename, recursive=recursive, exact=exact)

        make = partial(
            Upload,
            recursive=recursive,
            max_bytes=self._max_upload_bytes,
            owner=self._owner,
            exact=exact,
            follows=approve is None,
        )
        if approve is None:
            return await self.begin(lambda: make(destination, target.name))
        limits = (self._max_upload_bytes, self._owner)
        return await self.begin(lambda: HeldUpload(target, make, *limits, approve))

    async def download(self, path: str) -> tuple[str, str]:
        """Start a download as a zip file; return its id and the name of the source."""
        source = await self._in_thread(check_source, path)
        return await self.begin(lambda: zipped(source)), source.name or "root"

    async def begin(self, make: Callable[[], Sink | Iterator[bytes]]) -> str:
        """Start a transfer; return its id.

        ``make`` runs in a thread and returns the sink of an upload or the pieces of a download.
        """
        transfer = await self._in_thread(make)
        key = secrets.token_hex(16)
        self._transfers[key] = _Transfer(transfer)
        self._postpone_end(key)
        return key

    async def write(self, key: str, piece: bytes) -> None:
        """Write a piece of an upload; raise TransferError on failure."""
        await self._in_thread(self._find(key).write, piece)

    async def read(self, key: str) -> bytes:
        """Return the next piece of a download; b"" at the end, which ends the transfer."""
        piece: bytes = await self._in_thread(next, self._find(key), b"")
        if not piece:
            await self.end(key)
        return piece

    async def finish(self, key: str) -> None:
        """Put an upload in place; an OhJupyterError means that nothing was changed."""
        sink = self._find(key)
        try:
            if isinstance(sink, HeldUpload):
                self._stop_timer(key)  # a person may take longer
                await sink.approve(await self._in_thread(sink.paths))
            await self._in_thread(sink.finish)
        finally:
            await self.end(key)

    async def end(self, key: str) -> None:
        """End a transfer if it exists."""
        entry = self._transfers.pop(key, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        await self._in_thread(_abort, entry.transfer)

    def close(self) -> None:
        """End all transfers. Blocks, because pools accept no work at interpreter exit."""
        for key in list(self._transfers):
            entry = self._transfers.pop(key)
            if entry.timer is not None:
                entry.timer.cancel()
            _abort(entry.transfer)

    def _find(self, key: str) -> Any:
        if key not in self._transfers:
            raise TransferNotFoundError("This transfer has ended or timed out; start it again")
        self._postpone_end(key)
        return self._transfers[key].transfer

    def _stop_timer(self, key: str) -> None:
        timer = self._transfers[key].timer
        if timer is not None:
            timer.cancel()

    def _postpone_end(self, key: str) -> None:
        self._stop_timer(key)
        entry = self._transfers[key]
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(IDLE_SECONDS, lambda: run_in_background(self.end(key)))


def _abort(transfer: Sink | Iterator[bytes]) -> None:
    end = getattr(transfer, "abort", None) or getattr(transfer, "close", None)
    if end is not None:
        end()


class StoreSink:
    """Upload into a store's file; closing it puts it in place."""

    def __init__(self, begin: Callable[[], IO[bytes]]) -> None:
        """Open the file; raise TransferError if it cannot be written."""
        try:
            self._opened = begin()
        except OSError as error:
            raise unwritable("The store", error) from None

    def write(self, piece: bytes) -> None:
        """Write the next piece; raise TransferError on failure."""
        try:
            self._opened.write(piece)
        except OSError as error:
            raise unwritable("The store", error) from None

    def finish(self) -> None:
        """Put the file in place; raise TransferError on failure."""
        try:
            self._opened.close()
        except OSError as error:
            raise unwritable("The store", error) from None

    def abort(self) -> None:
        """Discard the upload: an exception leaves a store's file unchanged."""
        if not self._opened.closed:
            self._opened.__exit__(TransferError, TransferError("The upload was aborted"), None)


def store_pieces(opened: IO[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a store's open file."""
    with opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece
