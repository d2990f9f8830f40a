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

from oh_jupyter.storage.webhook.changes import Update

__all__ = ["LARGE_BYTES", "PayloadDirectory"]

LARGE_BYTES = 65_536
"""Contents of more bytes are kept here."""

_OLD_SECONDS = 3600.0


class PayloadDirectory:
    """A directory of files, each written once.

    Args:
        outbox: The database file; None for a directory that ends with this object.
    """

    def __init__(self, outbox: str | None) -> None:
        self._folder = None if outbox is None else outbox + "-bodies"
        self._own = outbox is None
        self._pid = os.getpid()

    def keep(self, update: Update) -> tuple[str, int]:
        """Copy the contents of a change.

        Args:
            update: The change.

        Returns:
            The name of the copy, and its size in bytes.
        """
        name = uuid.uuid4().hex
        path = os.path.join(self._made(), name)
        try:
            if update.source is not None:
                shutil.copyfile(update.source, path)
            else:
                with open(path, "xb") as file:
                    file.write(update.contents)
        except BaseException:
            self.drop([name])
            raise
        return name, os.path.getsize(path)

    def open(self, name: str) -> IO[bytes] | None:
        """Open a copy; None if it is there no more."""
        try:
            return open(os.path.join(self._made(), name), "rb")
        except FileNotFoundError:
            return None

    def drop(self, names: Iterable[str]) -> None:
        """Delete copies."""
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._made(), name))

    def close(self) -> None:
        """Delete everything, unless it is to survive the process."""
        if self._own and self._folder is not None:
            _remove(self._folder, self._pid)
            self._folder = None

    def sweep(self, known: Collection[str]) -> None:
        """Delete what a killed process has left unfinished.

        Args:
            known: The copies that are needed.
        """
        if self._own or self._folder is None or not os.path.isdir(self._folder):
            return
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):
                if entry.name not in known and time.time() - entry.stat().st_mtime > _OLD_SECONDS:
                    os.unlink(entry.path)

    def _made(self) -> str:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="oh-jupyter-outbox-")
            # Not at exit: then what is in it may still have to be sent.
            weakref.finalize(self, _remove, self._folder, os.getpid()).atexit = False
            self._pid = os.getpid()
        elif not self._own:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        return self._folder


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has a copy of the object, but not of the files
        shutil.rmtree(folder, ignore_errors=True)
