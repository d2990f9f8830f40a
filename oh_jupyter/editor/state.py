"""State of one editor: its limits, the contents last shown, and its history."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock

from oh_jupyter.edit_lock import find_interrupted
from oh_jupyter.editor.history.edit_history import EditHistory, finish_for

_MAX_BYTES = 64 * 1024 * 1024


class LastRead:
    """Contents last shown or written, by real path; the oldest are evicted."""

    def __init__(self) -> None:
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def remember(self, path: Path, content: bytes | None) -> None:
        """Store the content of a file; None for one that no longer exists."""
        with self._lock:
            self._drop(path)
            if content is None:
                return
            self._contents[path] = content
            self._size += len(content)
            while self._size > _MAX_BYTES:
                self._drop(next(iter(self._contents)))

    def update(self, contents: Mapping[Path, bytes | None]) -> None:
        """Store the contents of several files."""
        for path, content in contents.items():
            self.remember(path, content)

    def outdated(self, path: Path, content: bytes) -> bytes | None:
        """Return the content that was shown, if it differs from the current one."""
        with self._lock:
            shown = self._contents.get(path)
        return None if shown == content else shown

    def _drop(self, path: Path) -> None:
        self._size -= len(self._contents.pop(path, b""))


class EditorState:
    """State that the commands of one editor share."""

    def __init__(
        self,
        workspace: Path,
        max_file_bytes: int,
        history_dir: Path | None,
        max_edits: int,
        max_history_bytes: int,
    ) -> None:
        self.workspace = workspace
        self.max_file_bytes = max_file_bytes
        self.last_read = LastRead()
        self._history_dir = history_dir
        self._limits = max_edits, max_history_bytes

    @cached_property
    def history(self) -> EditHistory:
        """The history of the edits."""
        name = os.path.realpath(self.workspace) if self._history_dir is None else ""
        return EditHistory(self._history_dir, name, *self._limits)

    def finish_interrupted(self, *paths: Path) -> None:
        """Finish edits whose process died; usually this only asks the ledger."""
        self.history.finish_all()
        for path in paths:
            holder = find_interrupted(path)
            if holder is not None:
                finish_for(holder)


def real_path(path: Path) -> Path:
    """Resolve symbolic links; the file need not exist."""
    return Path(os.path.realpath(path))
