"""Exclusive locks: of a file among processes and threads, of a name among threads.

The operating system releases file locks when their holder dies. They belong to the open file, so
that threads exclude each other just like processes. Two protocols lock a file of their own:
``exclusion`` for the use of a resource, ``liveness`` for the life of a process.
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
_MAX_RECORD_BYTES = 16384  # two paths of maximum length
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


class LockFile:
    """A locked file, in which its holder can leave a record.

    Args:
        path: Its path.
        descriptor: The file, open for reading and writing.
    """

    def __init__(self, path: str | os.PathLike[str], descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._process = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Whether this process has the lock: a forked child has closed its copy."""
        return self._process == os.getpid()

    @property
    def is_lost(self) -> bool:
        """Whether the path no longer names this file, so that another one can lock it."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return not os.path.samestat(status, os.fstat(self._descriptor))

    def read(self) -> bytes:
        """Return the record, which may be that of an earlier holder."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        return os.read(self._descriptor, _MAX_RECORD_BYTES)

    def write(self, record: bytes) -> None:
        """Replace the record."""
        if os.fstat(self._descriptor).st_size:
            # Truncating an empty file would make ext4 flush it when it is closed.
            os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, record)

    def remove(self) -> None:
        """Remove the file, or at least the record."""
        try:
            os.unlink(self.path)
        except OSError:  # some systems cannot remove an open file
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)


def lock_path(resource: str | os.PathLike[str]) -> str:
    """Return the path of the lock file of a resource, which is beside it."""
    return f"{os.fspath(resource)}.lock"


def read_record(resource: str | os.PathLike[str]) -> bytes:
    """Read the record in the lock file of a resource without a lock; raise OSError without one."""
    with open(lock_path(resource), "rb", buffering=0) as file:
        return file.read(_MAX_RECORD_BYTES)


@contextlib.contextmanager
def file_lock(
    path: str | os.PathLike[str], timeout_seconds: float | None = None, *, mode: int = 0o600
) -> Iterator[LockFile]:
    """Hold the exclusive lock of a file in the block.

    The holder may remove the file and its directory; those who wait for it create them again.

    Args:
        path: The lock file; created with its directory if missing, and not removed.
        timeout_seconds: Maximum time to wait; None for no limit, 0 to try once.
        mode: Permissions of a new file.

    Yields:
        The locked file.

    Raises:
        TimeoutError: Others held the lock until the timeout.
        OSError: The file cannot be created.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    descriptor = _open(path, mode)
    _held.add(descriptor)
    lock = LockFile(path, descriptor)
    try:
        while True:
            if not _acquire(descriptor, deadline):
                raise _timeout(os.fspath(path), timeout_seconds)
            if not lock.is_lost:
                break
            _close(descriptor)
            descriptor = _open(path, mode)
            _held.add(descriptor)
            lock = LockFile(path, descriptor)
        yield lock
    finally:
        if lock.is_ours:
            _close(descriptor)


@contextlib.contextmanager
def thread_lock(name: str, timeout_seconds: float | None = None) -> Iterator[None]:
    """Hold the lock of a name in the block, among the threads of this process.

    Args:
        name: Any string.
        timeout_seconds: Maximum time to wait; None for no limit.

    Raises:
        TimeoutError: Others held the lock until the timeout.
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
            current, users = _named.get(name, (None, 0))
            if current is lock:  # in a forked child, the name may have another lock, or none
                if users > 1:
                    _named[name] = (lock, users - 1)
                else:
                    del _named[name]


def _open(path: str | os.PathLike[str], mode: int) -> int:
    while True:
        try:
            return os.open(path, _FLAGS, mode)
        except FileNotFoundError:  # its directory is missing, or was just removed
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)


def _close(descriptor: int) -> None:
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        _unlock(descriptor)
    os.close(descriptor)


def _acquire(descriptor: int, deadline: float | None) -> bool:
    """Lock an open file; False after the deadline of the monotonic clock."""
    if deadline is None and sys.platform != "win32":
        _lock(descriptor, True)
        return True
    pause = _FIRST_POLL_SECONDS
    # The system can wait for a lock, but not with a timeout.
    while not _lock(descriptor, False):
        remaining = pause if deadline is None else deadline - time.monotonic()
        if remaining <= 0:
            return False
        time.sleep(min(pause, remaining))
        pause = min(2 * pause, _MAX_POLL_SECONDS)
    return True


def _timeout(name: str, seconds: float | None) -> TimeoutError:
    return TimeoutError(f"The lock {name!r} was not free within {seconds} s; try again later.")


if sys.platform == "win32":
    import msvcrt

    # Others cannot read a locked byte there, so it is one past the end of any file.
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
    with contextlib.suppress(ImportError):  # without it, modules that never lock still work
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
        """Close copies of the parent's lock files, which would hold the locks, too."""
        global _guard
        _guard = threading.Lock()
        _named.clear()
        for descriptor in _held:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        _held.clear()

    os.register_at_fork(after_in_child=_reset_after_fork)
