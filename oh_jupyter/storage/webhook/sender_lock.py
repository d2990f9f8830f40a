"""Whose turn it is to send: one thread of one process at a time for each outbox."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

__all__ = ["process_mark", "still_runs", "turn"]

_CLOCK_SECONDS = 2.0
_here: dict[str, threading.Lock] = {}
_guard = threading.Lock()


@contextlib.contextmanager
def turn(path: str) -> Iterator[None]:
    """Wait until nobody else has the turn, and have it for the block.

    The system's record locks end with the process, however it ends, and are not inherited
    by a fork; lock files of the usual libraries are, and stay locked by a shell that
    outlives its parent.

    Args:
        path: The file to lock; made if it is missing, and left.
    """
    with _guard:
        lock = _here.setdefault(path, threading.Lock())
    with lock:
        if sys.platform == "win32":
            # One process an outbox there: order between two is not promised.
            yield
            return
        import fcntl

        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def process_mark() -> str:
    """Name this process in a way that no later one shares.

    Returns:
        Its id and when it started.
    """
    import psutil

    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def still_runs(mark: str) -> bool:
    """Tell whether a process is still there.

    Args:
        mark: What its `process_mark` was.

    Returns:
        False if it has ended, even if another one has its id now.
    """
    import psutil

    pid, _, started = mark.partition("@")
    try:
        process = psutil.Process(int(pid))
        # Correcting the clock moves the time that is reported.
        same = abs(process.create_time() - float(started)) < _CLOCK_SECONDS
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False


def _forget_after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
