"""Resolution of the file names in a patch."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from oh_jupyter.editor.files.paths import exists, similar
from oh_jupyter.errors import PatchError

__all__ = ["PatchPaths"]


class PatchPaths:
    """Resolver of the names in a patch, below one directory or for one file."""

    def __init__(self, path: Path) -> None:
        """Choose between the two."""
        self._path = path
        self._single = not path.is_dir()

    def find(self, name: str) -> Path:
        """Absolute path of a name; "" is the only file. Names outside the directory are refused."""
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
        """Hint at a similar file where there is none; else ""."""
        return "" if exists(path) else similar(path)
