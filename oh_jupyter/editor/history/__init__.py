"""The edit history on disk, and atomic commits of several files."""

from oh_jupyter.editor.history.commit import FileChange, commit
from oh_jupyter.editor.history.edit_history import EditHistory, HistoryEntry

__all__ = ["EditHistory", "FileChange", "HistoryEntry", "commit"]
