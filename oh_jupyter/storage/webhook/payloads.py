"""Directory of large contents, one file each."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Collection, Iterable
from typing import IO

from oh_jupyter.storage.webhook.changes import Change

_ORPHAN_SECONDS = 3600.0


class PayloadDirectory:
    """Directory beside an outbox; without an outbox it is temporary, until `close`."""

    def __init__(self, outbox: str | None) -> None:
        self._directory = None if outbox is None else outbox + "-bodies"
        self._is_temporary = outbox is None

    def store(self, change: Change) -> tuple[str, int]:
        """Copy the contents of a change; return the name and size of the copy."""
        name = uuid.uuid4().hex
        path = self._path(name)
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

    def open(self, name: str) -> IO[bytes]:
        """Open a copy."""
        return open(self._path(name), "rb")

    def delete(self, names: Iterable[str]) -> None:
        """Delete copies."""
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self._path(name))

    def delete_orphans(self, known: Collection[str]) -> None:
        """Delete old copies left by a killed process, except the known names."""
        if self._is_temporary or self._directory is None or not os.path.isdir(self._directory):
            return
        for entry in os.scandir(self._directory):
            with contextlib.suppress(OSError):
                age = time.time() - entry.stat().st_mtime
                if entry.name not in known and age > _ORPHAN_SECONDS:
                    os.unlink(entry.path)

    def close(self) -> None:
        """Delete a temporary directory."""
        if self._is_temporary and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _path(self, name: str) -> str:
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="oh-jupyter-outbox-")
        elif not self._is_temporary:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        return os.path.join(self._directory, name)
