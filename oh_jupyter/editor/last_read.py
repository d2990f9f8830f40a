"""Cache of what this editor showed last, to notice when somebody else changes a file."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

__all__ = ["LastRead"]

_MAX_BYTES = 64 * 1024 * 1024


class LastRead:
    """Contents that were shown or written last, by real path; the oldest are evicted.

    Contents are compared, not times: a file that was saved unchanged has not changed.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def remember(self, path: Path, content: bytes) -> None:
        """Store what was shown or written."""
        with self._lock:
            self._drop(path)
            self._contents[path] = content
            self._size += len(content)
            while self._size > _MAX_BYTES:
                self._drop(next(iter(self._contents)))

    def forget(self, path: Path) -> None:
        """Drop a file that is gone."""
        with self._lock:
            self._drop(path)

    def outdated(self, path: Path, content: bytes) -> bytes | None:
        """Content that was shown, if it is another than the current one; else None."""
        with self._lock:
            shown = self._contents.get(path)
        return None if shown == content else shown

    def _drop(self, path: Path) -> None:
        self._size -= len(self._contents.pop(path, b""))
