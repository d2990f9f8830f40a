"""Directory for all temporary files of a browser.

Chromium and Playwright's driver create profiles, sockets and partial downloads in the directory
for temporary files, and a killed browser does not remove them. Here each browser has its own
directory. Its owner removes it; if the owner was killed, the worker's guardian does; if both
were killed, the next browser that starts does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from oh_jupyter.liveness import LifeLock, excluding
from oh_jupyter.locks import lock_path

PREFIX = "oh_browser_"
OWNER = "owner"
MAX_ROOT_BYTES = 30
"""Maximum length of the root's path. Chromium's socket paths are about 70 bytes longer, and the
limit of a socket path is 104 bytes."""
LOCK_CREATION_SECONDS = 60.0
"""Age up to which a directory without a lock may still be getting one from its owner."""


class TempDir:
    """Directory that exists as long as its owner's process."""

    def __init__(self) -> None:
        remove_abandoned()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_root()))
            with contextlib.suppress(TimeoutError):  # another one takes it for abandoned
                self._life = LifeLock(self.path / OWNER)
                break
        self.downloads = self.path / "downloads"
        self.downloads.mkdir()
        self.temporary = self.path / "tmp"
        self._closing = threading.Lock()

    def recreate_temporary(self) -> Path:
        """Clear the directory for temporary files before a worker starts, and return it."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir(exist_ok=True)
        return self.temporary

    def close(self) -> None:
        """Remove the directory; repeated and concurrent calls are harmless."""
        with self._closing:
            if self._life.close.alive:
                shutil.rmtree(self.path, ignore_errors=True)
                self._life.close()


def remove_abandoned() -> None:
    """Remove the directories whose owners have exited."""
    for path in Path(_root()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            age = time.time() - path.lstat().st_mtime
            owner = path / OWNER
            is_new = not os.path.exists(lock_path(owner)) and age < LOCK_CREATION_SECONDS
            if not os.access(path, os.W_OK) or is_new:
                continue
            with excluding(owner) as is_abandoned:
                if is_abandoned:
                    shutil.rmtree(path, ignore_errors=True)


def _root() -> str:
    """Return the system's directory for temporary files, or /tmp if its path is too long."""
    root = tempfile.gettempdir()
    is_usable = len(os.fsencode(root)) <= MAX_ROOT_BYTES or not os.access("/tmp", os.W_OK)
    return root if is_usable else "/tmp"
