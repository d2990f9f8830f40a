"""What one editor knows: its limits, what it showed last, and where its history is."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.editor.files.file_lock import find_interrupted
from oh_jupyter.editor.history.edit_history import (
    EditHistory,
    default_folder,
    finish_for,
    state_folder,
)
from oh_jupyter.editor.history.journal import Journal
from oh_jupyter.editor.last_read import LastRead
from oh_jupyter.errors import FileChangedError

__all__ = ["MAX_ATTEMPTS", "EditorState", "real_path", "still_being_written"]

MAX_ATTEMPTS = 3
"""How often an edit is tried while somebody else keeps writing the file."""


class EditorState:
    """What the commands of one editor share.

    Attributes:
        workspace: Where relative paths are looked for, to suggest absolute ones.
        max_file_bytes: The size in bytes above which a file is refused.
        seen: What was shown or written last, by file.
    """

    def __init__(
        self,
        workspace: Path,
        max_file_bytes: int,
        history_dir: Path | None,
        max_steps: int,
        max_history: int,
    ) -> None:
        """Remember nothing yet.

        Args:
            workspace: The root of the workspace.
            max_file_bytes: The size in bytes above which a file is refused.
            history_dir: Where the history is kept; None for the workspace's own folder.
            max_steps: Undo steps for each file.
            max_history: The size in bytes of the whole history.
        """
        self.workspace = workspace
        self.max_file_bytes = max_file_bytes
        self.last_read = LastRead()
        self._history_dir = history_dir
        self._limits = max_steps, max_history
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

        A look at a directory, where nothing is to be done; nothing is created.

        Args:
            *paths: Files of which the edits of other workspaces are finished too.

        Raises:
            EditorError: A file cannot be written.
        """
        folder = self._history_dir or state_folder(self.workspace)
        if Journal(folder).names():
            from oh_jupyter.editor.history.commit import finish_all

            finish_all(self.history)
        for path in paths:
            holder = find_interrupted(path)
            if holder is not None:
                finish_for(holder)


def real_path(path: Path) -> Path:
    """Follow symbolic links.

    Args:
        path: A file, which need not exist.

    Returns:
        The file itself.
    """
    return Path(os.path.realpath(path))


def still_being_written(path: object) -> FileChangedError:
    """Say that somebody else keeps writing a file.

    Args:
        path: The file.

    Returns:
        The error to raise.
    """
    return FileChangedError(
        f"Somebody else keeps writing {path}; nothing was changed. Try again later."
    )
