"""Lock files, across threads and processes.

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
def locked(path: str | Path, *, wait: bool = True) -> Iterator[int]:
    """Hold the lock of a lock file, whose descriptor is yielded.

    Every call opens the file anew, and such locks belong to the open file, so
    threads exclude each other just as processes do. Whoever holds the lock may remove the
    file and its folder: those who waited for it notice and make them anew.
    """
    descriptor = _open(path)
    try:
        while True:
            _lock(descriptor, wait)
            if _is_there(path, descriptor):
                break
            os.close(descriptor)
            descriptor = _open(path)
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock


def _open(path: str | Path) -> int:
    flags = os.O_RDWR | os.O_CREAT
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:  # perhaps the folder was removed in this moment
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)


def _is_there(path: str | Path, descriptor: int) -> bool:
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
