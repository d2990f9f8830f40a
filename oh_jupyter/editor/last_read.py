"""What this editor showed last, to notice when somebody else changes a file."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

__all__ = ["LastRead"]

_MAX_BYTES = 64 * 1024 * 1024


class LastRead:
    """The contents that were shown or written last, by file; the oldest are forgotten.

    Contents are compared, not times: a file that was saved unchanged has not changed.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def remember(self, path: Path, content: bytes) -> None:
        """Note that a content was shown or written.

        Args:
            path: The file itself; no symbolic link.
            content: All of it.
        """
        with self._lock:
            self._drop(path)
            self._contents[path] = content
            self._size += len(content)
            while self._size > _MAX_BYTES:
                self._drop(next(iter(self._contents)))

    def forget(self, path: Path) -> None:
        """Note that the file is gone.

        Args:
            path: The file itself; no symbolic link.
        """
        with self._lock:
            self._drop(path)

    def before(self, path: Path, content: bytes) -> bytes | None:
        """Look up what was shown, if it is not what is there now.

        Args:
            path: The file itself; no symbolic link.
            content: What is there now.

        Returns:
            What was shown; None if it is the same, or if the file was never shown.
        """
        with self._lock:
            shown = self._contents.get(path)
        return None if shown == content else shown

    def _drop(self, path: Path) -> None:
        self._size -= len(self._contents.pop(path, b""))
