"""Which file a name in a patch means."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from oh_jupyter.editor.files.paths import exists, similar
from oh_jupyter.errors import PatchError

__all__ = ["PatchPaths"]


class PatchPaths:
    """Finds files by the names in a patch, below one directory or for one file."""

    def __init__(self, path: Path) -> None:
        """Choose between the two.

        Args:
            path: A directory; anything else stands for the only file of the patch.
        """
        self._path = path
        self._single = not path.is_dir()

    def find(self, name: str) -> Path:
        """Find a file.

        Args:
            name: Its name in the patch; "" for the only one.

        Returns:
            Its absolute path; there may be nothing.

        Raises:
            PatchError: No file is named, another one is meant, or it is outside the directory.
        """
        if self._single:
            parts = PurePosixPath(name).parts
            if parts and self._path.parts[-len(parts) :] != parts and Path(name) != self._path:
                raise PatchError(
                    f"The patch is for {self._path}, but changes {name}; nothing was changed. "
                    "Give the directory of its files as `path` instead."
                )
            return self._path
        if not name:
            raise PatchError(
                f"The patch does not name its file, and {self._path} is a directory; nothing was "
                "changed. Write the name above it, or give the file as `path`."
            )
        path = Path(os.path.normpath(self._path / name))
        if not path.is_relative_to(os.path.normpath(self._path)):
            raise PatchError(
                f"The patch changes {name}, which is not below {self._path}; nothing was changed. "
                "Give a directory as `path` that all its files are in."
            )
        return path

    def similar(self, path: Path) -> str:
        """Suggest a file where there is none.

        Args:
            path: Where there is none.

        Returns:
            A sentence; "" if nothing is similar.
        """
        return "" if exists(path) else similar(path)
