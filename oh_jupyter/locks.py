"""Exclusive locks of a file, among processes and threads, and of a name, among threads.

Locks of the operating system are freed when their holder dies, however it dies. They
belong to the open file, so that threads exclude each other just as processes do.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

_FIRST_POLL_SECONDS = 0.001
_MAX_POLL_SECONDS = 0.05
_FLAGS = (
    os.O_RDWR
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)

_guard = threading.Lock()
_named: dict[str, tuple[threading.Lock, int]] = {}
_held: set[int] = set()  # descriptors of locked files


@contextlib.contextmanager
def file_lock(
    path: str | os.PathLike[str], timeout_seconds: float | None = None, *, mode: int = 0o600
) -> Iterator[int]:
    """Hold the exclusive lock of a file for the block, and get its descriptor.

    Whoever holds the lock may remove the file and its directory: those who waited for it
    notice, and make them anew.

    Args:
        path: The lock file; made if it is missing, with its directory, and left.
        timeout_seconds: How long to wait at most; None for as long as it takes, 0 to try once.
        mode: Permissions of a file that is made.

    Yields:
        The descriptor of the file, open for reading and writing.

    Raises:
        TimeoutError: If others held it all the time.
        OSError: If the file cannot be made.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    descriptor = _open(path, mode)
    _held.add(descriptor)
    owner = os.getpid()
    try:
        while True:
            if not _acquire(descriptor, deadline):
                raise _timeout(os.fspath(path), timeout_seconds)
            if is_locked_file(path, descriptor):
                break
            _close(descriptor)
            descriptor = _open(path, mode)
            _held.add(descriptor)
        yield descriptor
    finally:
        # A forked child has closed its copy already.
        if os.getpid() == owner:
            _close(descriptor)


def is_locked_file(path: str | os.PathLike[str], descriptor: int) -> bool:
    """Tell whether the file that a lock was taken on is still the one of that name."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def thread_lock(name: str, timeout_seconds: float | None = None) -> Iterator[None]:
    """Hold the lock of a name for the block, among the threads of this process.

    Args:
        name: Any string.
        timeout_seconds: How long to wait at most; None for as long as it takes.

    Raises:
        TimeoutError: If others held it all the time.
    """
    with _guard:
        lock, users = _named.get(name, (threading.Lock(), 0))
        _named[name] = (lock, users + 1)
    try:
        if not lock.acquire(timeout=-1 if timeout_seconds is None else max(timeout_seconds, 0)):
            raise _timeout(name, timeout_seconds)
        try:
            yield
        finally:
            lock.release()
    finally:
        with _guard:
            lock, users = _named[name]
            if users > 1:
                _named[name] = (lock, users - 1)
            else:
                del _named[name]


def _open(path: str | os.PathLike[str], mode: int) -> int:
    while True:
        try:
            return os.open(path, _FLAGS, mode)
        except FileNotFoundError:  # its directory is missing, or was removed at this moment
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)


def _close(descriptor: int) -> None:
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        _unlock(descriptor)
    os.close(descriptor)


def _acquire(descriptor: int, deadline: float | None) -> bool:
    """Lock an open file; False if the deadline of the monotonic clock passed before."""
    if deadline is None and sys.platform != "win32":
        _lock(descriptor, True)
        return True
    pause = _FIRST_POLL_SECONDS
    # The system can wait for a lock, but not for a limited time.
    while not _lock(descriptor, False):
        left = pause if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, _MAX_POLL_SECONDS)
    return True


def _timeout(name: str, seconds: float | None) -> TimeoutError:
    return TimeoutError(f"The lock {name!r} was not free within {seconds} s; try again later.")


if sys.platform == "win32":
    import msvcrt

    # What is locked there cannot be read by others, so it is a byte that no file has.
    _OFFSET_BYTES = 0x7FFFFFF0

    def _lock(descriptor: int, wait: bool) -> bool:
        try:
            _control(descriptor, msvcrt.LK_NBLCK)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        _control(descriptor, msvcrt.LK_UNLCK)

    def _control(descriptor: int, mode: int) -> None:
        os.lseek(descriptor, _OFFSET_BYTES, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, mode, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    with contextlib.suppress(ImportError):  # a Python without it can import what never locks
        import fcntl

    def _lock(descriptor: int, wait: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _reset_after_fork() -> None:
        """Leave the locks to the parent: a copy of its open file would hold them as well."""
        global _guard
        _guard = threading.Lock()
        _named.clear()
        for descriptor in _held:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        _held.clear()

    os.register_at_fork(after_in_child=_reset_after_fork)
