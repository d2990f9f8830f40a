"""Texts that are too long for a result, in files that agents can read."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import psutil

FOLDER_PREFIX = "oh-outputs-"
MAX_FILES = 100
MAX_BYTES = 64 * 1024**2
"""Limits of a runtime; the oldest files are removed."""


class KeptTexts:
    """Files in a temporary folder, which ends with the runtime.

    They are outside of the workspace, so checkpoints and reviews do not see them. All methods
    block.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._sizes: dict[Path, int] = {}

    def keep(self, text: str, name: str = "") -> str:
        """Write a text into a file; return its path.

        The same text has the same file, unless ``name`` names one, which is then replaced.
        """
        data = text.encode("utf-8", "replace")
        if self._folder is None:
            _remove_abandoned()
            self._folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        path = self._folder / f"{name or sha256(data).hexdigest()[:12]}.txt"
        if name or path not in self._sizes:
            path.write_bytes(data)
        self._sizes.pop(path, None)
        self._sizes[path] = len(data)
        while len(self._sizes) > MAX_FILES or sum(self._sizes.values()) > MAX_BYTES:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest]
            oldest.unlink(missing_ok=True)
        return str(path)

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError, ValueError):
            pid = int(folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0])
            if not psutil.pid_exists(pid):
                shutil.rmtree(folder)
