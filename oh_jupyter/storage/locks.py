"""Locks by name: among threads, and among processes where there is a file to lock."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

__all__ = ["held"]

_POLL_SECONDS = 0.02
_guard = threading.Lock()
_names: dict[str, tuple[threading.Lock, int]] = {}


@contextlib.contextmanager
def held(name: str, timeout: float, file: str | None = None) -> Iterator[None]:
    """Hold a lock for the block.

    Args:
        name: Which; the same for all threads.
        timeout: Seconds to wait at most.
        file: A file whose lock is held as well; it is made, and left.

    Raises:
        TimeoutError: If others held it all the time.
    """
    deadline = time.monotonic() + timeout
    with _guard:
        lock, users = _names.get(name, (threading.Lock(), 0))
        _names[name] = (lock, users + 1)
    try:
        if not lock.acquire(timeout=max(timeout, 0)):
            raise _too_late(name, timeout)
        try:
            with _file_held(file, deadline, timeout):
                yield
        finally:
            lock.release()
    finally:
        with _guard:
            lock, users = _names[name]
            if users > 1:
                _names[name] = (lock, users - 1)
            else:
                del _names[name]


@contextlib.contextmanager
def _file_held(file: str | None, deadline: float, timeout: float) -> Iterator[None]:
    if file is None or sys.platform == "win32":
        yield
        return
    import fcntl

    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        while True:
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):
                # The system can wait for a lock, but not for a limited time.
                if time.monotonic() >= deadline:
                    raise _too_late(file, timeout) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(fd)


def _too_late(name: str, timeout: float) -> TimeoutError:
    return TimeoutError(f"The lock {name!r} was not free within {timeout} s; try again later.")


def _forget_after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _names.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
