"""Lock of a process on its turns, which the system releases however the process dies."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from oh_jupyter.liveness import LifeLock, excluding
from oh_jupyter.locks import lock_path


class Owner:
    """The lock of a process; its modification time shows when the process was last alive."""

    def __init__(self, directory: Path) -> None:
        """Take a new lock, which is released with this object at the latest."""
        self.token = uuid.uuid4().hex
        self._life = LifeLock(_owner(directory, self.token))

    def close(self) -> None:
        """Release the lock."""
        self._life.close()

    def beat(self) -> None:
        """Record that the process is alive."""
        with contextlib.suppress(OSError):  # then less is proven if it dies
            os.utime(self._life.file.path)


def is_alive(directory: Path, token: str) -> bool:
    """Return whether the process of an owner still runs."""
    if not token or not _lock(directory, token).exists():
        return False
    with excluding(_owner(directory, token)) as is_free:
        return not is_free


def last_alive(directory: Path, token: str) -> float:
    """Return when an owner was last known to be alive, 0 if that is not known."""
    try:
        return _lock(directory, token).stat().st_mtime
    except OSError:
        return 0.0


def forget_owner(directory: Path, token: str) -> None:
    """Remove the lock of a dead owner."""
    if token:
        _lock(directory, token).unlink(missing_ok=True)


def _owner(directory: Path, token: str) -> Path:
    return directory / "owners" / token


def _lock(directory: Path, token: str) -> Path:
    return Path(lock_path(_owner(directory, token)))
