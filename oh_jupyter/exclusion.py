"""Mutual exclusion: one thread of one process of a machine uses a resource at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from oh_jupyter.locks import LockFile, file_lock, lock_path


class Exclusion:
    """The use of a resource by one, who may leave a record of it.

    Args:
        lock: The lock file of the resource.

    Attributes:
        record: The record that an earlier user has left, or b"".
        is_kept: Whether the record stays after the end, for the next user; at first, whether an
            earlier user has left one.
    """

    def __init__(self, lock: LockFile) -> None:
        self._lock = lock
        self.record = lock.read()
        self.is_kept = bool(self.record)

    def write(self, record: bytes) -> None:
        """Replace the record."""
        self._lock.write(record)

    def end(self) -> None:
        """Remove the lock file, unless the record stays."""
        if self._lock.is_ours and not self.is_kept:
            self._lock.remove()


@contextlib.contextmanager
def exclusive(
    resource: str | os.PathLike[str], timeout_seconds: float | None = None
) -> Iterator[Exclusion]:
    """Use a resource alone in the block.

    The lock file is beside the resource, private, and removed at the end of the block unless it has
    a record to keep. One that a killed process leaves is free, with the record of that process.

    Args:
        resource: A path, which need not exist; its directory is created if it is missing.
        timeout_seconds: Maximum time to wait; None for no limit, 0 to try once.

    Raises:
        TimeoutError: Others used the resource until the timeout.
        OSError: The lock file cannot be created.
    """
    with file_lock(lock_path(resource), timeout_seconds) as lock:
        exclusion = Exclusion(lock)
        try:
            yield exclusion
        finally:
            exclusion.end()
