"""Pipes to a child, for event loops that cannot wait for one.

On Windows a loop waits for neither a pipe nor a process, so threads do, and hand over. This works
everywhere, and is the same code everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable

from oh_jupyter.shell.threads import start_thread

__all__ = ["PipeReader", "PipeWriter"]

READ_BYTES = 65_536
MAX_QUEUED_PIECES = 64
"""Pieces that wait for the loop at most; the program that writes has to wait then."""


class PipeReader:
    """Reads what a child writes, and delivers it on an event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_data: Callable[[bytes], None], name: str
    ) -> None:
        """Make a pipe and start to read it."""
        self._loop = loop
        self._on_data = on_data
        self._read_end, self.write_end = os.pipe()
        self._pieces: deque[bytes] = deque()
        self._room = threading.Semaphore(MAX_QUEUED_PIECES)
        self._closed = False
        start_thread(self._read, name)

    def _read(self) -> None:
        """Read until nobody can write any more."""
        while piece := os.read(self._read_end, READ_BYTES):
            self._room.acquire()
            self._pieces.append(piece)
            try:
                self._loop.call_soon_threadsafe(self.read_now)
            except RuntimeError:  # The loop is closed; go on, so that the child can end.
                self._closed = True
            if self._closed:
                self._room.release()
        os.close(self._read_end)

    def read_now(self) -> None:
        """Deliver what has arrived already; only on the loop."""
        while self._pieces:
            piece = self._pieces.popleft()
            self._room.release()
            if not self._closed:
                self._on_data(piece)

    def write_after(self, event: Callable[[], object], data: bytes, name: str) -> None:
        """Write something behind all that the child has written, when something has happened."""
        # A descriptor of its own: ours may be closed by then, and its number be another file's.
        descriptor = os.dup(self.write_end)

        def write() -> None:
            event()
            with contextlib.suppress(OSError):
                os.write(descriptor, data)
            os.close(descriptor)

        start_thread(write, name)

    def close(self) -> None:
        """Deliver nothing more. The thread ends when all who write have ended."""
        self._closed = True
        self.read_now()
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


class PipeWriter:
    """Writes to a child without ever making the loop wait."""

    def __init__(
        self, write: Callable[[bytes], object], close: Callable[[], object], name: str
    ) -> None:
        self._write = write
        self._close = close
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        start_thread(self._send, name)

    def _send(self) -> None:
        with contextlib.suppress(OSError):  # The child has ended: nobody will read it.
            while (data := self._unsent.get()) is not None:
                self._write(data)
        with contextlib.suppress(OSError):
            self._close()

    def write(self, data: bytes) -> None:
        """Write something, after everything before it."""
        self._unsent.put(data)

    def close(self) -> None:
        """Close the pipe when all is written."""
        self._unsent.put(None)
