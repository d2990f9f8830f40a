"""One writer at a time for each file, across threads and processes.

Locks of the operating system are used directly: they wake a waiter at once and are
freed when their holder dies. The ``filelock`` package polls instead, and imports
asyncio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a lock file; wait until it is free.

    Every call opens the file anew, and such locks belong to the open file, so
    threads exclude each other just as processes do.

    Args:
        path: The lock file; created if it is not there.

    Yields:
        Nothing; the lock is held inside the block.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)  # frees the lock


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # tries for ten seconds
                return
            except OSError:
                continue
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
