"""Temporary files that a shell's processes see, also in a sandbox or as another user."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

from oh_jupyter.shell.driver import Enclosure


class SharedFile:
    """A temporary file.

    Attributes:
        descriptor: Open descriptor; a process in a sandbox could put a link at the path.
        path_inside: Path at which the shell sees the file.
    """

    def __init__(self, enclosure: Enclosure | None, user: str | None) -> None:
        """Create an empty file, which the shell's user may write; may raise OSError."""
        directory = None if enclosure is None else enclosure.temporary_dir
        self.descriptor, self._path = tempfile.mkstemp(prefix="oh_shell_", dir=directory)
        self.path_inside = self._path
        if enclosure is not None:
            name = os.path.basename(self._path)
            self.path_inside = os.path.join(enclosure.temporary_dir_inside, name)
        if user is not None:
            shutil.chown(self._path, user)

    def write(self, data: bytes) -> None:
        """Append data; may raise OSError."""
        with open(self.descriptor, "wb", closefd=False) as file:
            file.write(data)

    def remove(self) -> None:
        """Close and remove the file."""
        os.close(self.descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
