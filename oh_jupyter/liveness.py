"""Life of a process: a lock file that it holds, and the system releases however it dies."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator

from oh_jupyter.locks import file_lock, lock_path


class LifeLock:
    """A lock that is held as long as this object and its process exist.

    Its file stays after the end, which its modification time may prove.

    Args:
        resource: A path, which need not exist; the lock file is beside it.
        timeout_seconds: Maximum time to wait until another process ends, 0 to try once.

    Raises:
        TimeoutError: Another process has it.

    Attributes:
        file: The lock file.
    """

    def __init__(self, resource: str | os.PathLike[str], timeout_seconds: float = 0) -> None:
        stack = contextlib.ExitStack()
        self.file = stack.enter_context(file_lock(lock_path(resource), timeout_seconds))
        self.close = weakref.finalize(self, stack.close)
        self.close.atexit = False  # a runtime may be closed after Python's exit handlers


@contextlib.contextmanager
def excluding(resource: str | os.PathLike[str]) -> Iterator[bool]:
    """Yield whether no process holds a lock; in the block, no other one takes it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(lock_path(resource), 0))
        except TimeoutError:
            is_free = False
        else:
            is_free = True
        yield is_free
