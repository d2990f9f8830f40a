"""The one folder in which a browser leaves files while it runs.

Chromium and Playwright's driver make profiles, sockets and partial downloads in the folder for
temporary files, and a browser that is killed leaves them there. Here they get a folder of
their own, which goes with the browser: removed by its owner, by the guardian of the worker
when the owner was killed, and by the next browser that starts when both were.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

PREFIX = "oh_browser_"
LOCK_NAME = "owner"
MAX_ROOT_BYTES = 30
"""Bytes: Chromium makes a socket some 70 deeper, and a socket's name has 104 at most."""
LOCK_CREATION_SECONDS = 60.0
"""Seconds that a folder may be without its owner's lock: it is just being made."""


class TempDir:
    """A folder that lives as long as its owner."""

    def __init__(self) -> None:
        remove_abandoned()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_root()))
            # The lock ends with the owner's process, however that ends.
            self._lock = os.open(self.path / LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o600)
            if _locked(self._lock):
                break
            os.close(self._lock)
        self.downloads = self.path / "downloads"
        self.downloads.mkdir()
        self.temporary = self.path / "tmp"
        self._closing = threading.Lock()

    def recreate_temporary(self) -> Path:
        """Make the folder for temporary files anew, for a worker that is about to start."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir(exist_ok=True)
        return self.temporary

    def close(self) -> None:
        """Remove the folder. More than once does no harm, from several threads either."""
        with self._closing:
            if self._lock >= 0:
                shutil.rmtree(self.path, ignore_errors=True)
                os.close(self._lock)
                self._lock = -1


def remove_abandoned() -> None:
    """Remove the folders whose owners are gone."""
    for path in Path(_root()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = path.lstat()
            lock = path / LOCK_NAME
            settles = not lock.exists() and time.time() - about.st_mtime < LOCK_CREATION_SECONDS
            if not os.access(path, os.W_OK) or settles:
                continue
            descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                if _locked(descriptor):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _root() -> str:
    """Where temporary files go, unless the sockets in there would have too long a name."""
    root = tempfile.gettempdir()
    short = len(os.fsencode(root)) <= MAX_ROOT_BYTES or not os.access("/tmp", os.W_OK)
    return root if short else "/tmp"


def _locked(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
