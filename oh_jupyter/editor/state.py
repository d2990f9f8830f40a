"""State of one editor: its limits, what it showed last, and its history."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.editor.files.edit_lock import find_interrupted
from oh_jupyter.editor.history.edit_history import (
    EditHistory,
    default_folder,
    finish_for,
    state_folder,
)
from oh_jupyter.editor.history.journal import Journal
from oh_jupyter.editor.last_read import LastRead

__all__ = ["EditorState", "real_path"]


class EditorState:
    """What the commands of one editor share."""

    def __init__(
        self,
        workspace: Path,
        max_file_bytes: int,
        history_dir: Path | None,
        max_steps: int,
        max_history_bytes: int,
    ) -> None:
        """Remember nothing yet; without ``history_dir`` the history is the workspace's own."""
        self.workspace = workspace
        self.max_file_bytes = max_file_bytes
        self.last_read = LastRead()
        self._history_dir = history_dir
        self._limits = max_steps, max_history_bytes
        self._history: EditHistory | None = None

    @property
    def history(self) -> EditHistory:
        """Where the undo steps are kept; found when it is first needed."""
        if self._history is None:
            folder = self._history_dir or default_folder(self.workspace)
            self._history = EditHistory(folder, *self._limits)
        return self._history

    def finish_interrupted(self, *paths: Path) -> None:
        """Finish what a process left behind that died in the middle of an edit.

        Where there is nothing to do, this looks at two directories and creates nothing.
        """
        folder = self._history_dir or state_folder(self.workspace)
        if Journal(folder).names():
            self.history.finish_all()
        for path in paths:
            holder = find_interrupted(path)
            if holder is not None:
                finish_for(holder)


def real_path(path: Path) -> Path:
    """Follow symbolic links; the file need not exist."""
    return Path(os.path.realpath(path))
