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
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a lock file; wait until it is free.

    Every call opens the file anew, and such locks belong to the open file, so
    threads exclude each other just as processes do. Whoever holds the lock may remove the
    file and its folder: those who waited for it notice and make them anew.

    Args:
        path: The lock file; created with its folder if it is not there.
        wait: Whether to wait.

    Yields:
        Nothing; the lock is held inside the block.

    Raises:
        BlockingIOError: Somebody else holds it, and this was not to wait.
        OSError: The file cannot be made.
    """
    descriptor = _open(path)
    try:
        while True:
            _lock(descriptor, wait)
            if _is_there(path, descriptor):
                break
            os.close(descriptor)
            descriptor = _open(path)
        yield
    finally:
        os.close(descriptor)  # frees the lock


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            continue  # the folder was removed in this moment


def _is_there(path: Path, descriptor: int) -> bool:
    """Whether the file that is locked is still the one of that name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, wait: bool) -> None:
        while True:
            try:
                # The first of these tries for ten seconds.
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except OSError as error:
                if not wait:
                    raise BlockingIOError(*error.args) from None
else:
    import fcntl

    def _lock(descriptor: int, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
