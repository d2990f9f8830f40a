"""Large contents of an outbox, in files of their own beside the database."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Collection, Iterable
from typing import IO

from oh_jupyter.storage.webhook.changes import Change

__all__ = ["LARGE_BYTES", "PayloadDirectory"]

LARGE_BYTES = 65_536
"""Contents of more bytes are kept here."""

_ORPHAN_SECONDS = 3600.0


class PayloadDirectory:
    """A directory of files, each written once; without an outbox it ends with this object."""

    def __init__(self, outbox: str | None) -> None:
        self._directory = None if outbox is None else outbox + "-bodies"
        self._is_temporary = outbox is None
        self._pid = os.getpid()

    def store(self, change: Change) -> tuple[str, int]:
        """Copy the contents of a change; give the name of the copy and its size in bytes."""
        name = uuid.uuid4().hex
        path = os.path.join(self._existing(), name)
        try:
            if change.source is not None:
                shutil.copyfile(change.source, path)
            else:
                with open(path, "xb") as file:
                    file.write(change.contents)
        except BaseException:
            self.delete([name])
            raise
        return name, os.path.getsize(path)

    def open(self, name: str) -> IO[bytes] | None:
        """Open a copy; None if it is there no more."""
        try:
            return open(self.path(name), "rb")
        except FileNotFoundError:
            return None

    def path(self, name: str) -> str:
        """Where a copy is."""
        return os.path.join(self._existing(), name)

    def delete(self, names: Iterable[str]) -> None:
        """Delete copies."""
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self.path(name))

    def close(self) -> None:
        """Delete everything, unless it is to survive the process."""
        if self._is_temporary and self._directory is not None:
            _remove(self._directory, self._pid)
            self._directory = None

    def delete_orphans(self, known: Collection[str]) -> None:
        """Delete old copies, except those known, that a killed process has left."""
        if self._is_temporary or self._directory is None or not os.path.isdir(self._directory):
            return
        for entry in os.scandir(self._directory):
            with contextlib.suppress(OSError):
                age = time.time() - entry.stat().st_mtime
                if entry.name not in known and age > _ORPHAN_SECONDS:
                    os.unlink(entry.path)

    def _existing(self) -> str:
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="oh-jupyter-outbox-")
            # Not at exit: then what is in it may still have to be sent.
            weakref.finalize(self, _remove, self._directory, os.getpid()).atexit = False
            self._pid = os.getpid()
        elif not self._is_temporary:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        return self._directory


def _remove(directory: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has a copy of the object, but not of the files
        shutil.rmtree(directory, ignore_errors=True)
