"""Life of a process: a lock file that it holds, and the system releases however it dies."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator

from oh_jupyter.locks import file_lock


class LifeLock:
    """A lock that is held as long as this object and its process exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Take the lock; raise TimeoutError if another process has it."""
        stack = contextlib.ExitStack()
        stack.enter_context(file_lock(path, 0))
        self.close = weakref.finalize(self, stack.close)
        self.close.atexit = False  # a runtime may be closed after Python's exit handlers


@contextlib.contextmanager
def excluding(path: str | os.PathLike[str]) -> Iterator[bool]:
    """Yield whether no process holds a lock; in the block, no other one takes it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path, 0))
        except TimeoutError:
            is_free = False
        else:
            is_free = True
        yield is_free
