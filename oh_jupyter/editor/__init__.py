"""The file editor: views, edits, and a history that survives."""

from oh_jupyter.editor.arguments import COMMANDS
from oh_jupyter.editor.changed_files import CellChange, ChangedFile, HistoryPosition
from oh_jupyter.editor.editor import FileEditor
from oh_jupyter.editor.engine import Transaction
from oh_jupyter.editor.history.edit_history import HistoryEntry
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.errors import (
    EditorError,
    EditorParameterInvalidError,
    EditorParameterMissingError,
    FileChangedError,
    FileValidationError,
    NoHistoryError,
    NoReplacementError,
    PatchError,
)

__all__ = [
    "COMMANDS",
    "CellChange",
    "ChangedFile",
    "EditorError",
    "EditorParameterInvalidError",
    "EditorParameterMissingError",
    "EditorResult",
    "FileChangedError",
    "FileEditor",
    "FileValidationError",
    "HistoryEntry",
    "HistoryPosition",
    "NoHistoryError",
    "NoReplacementError",
    "PatchError",
    "Transaction",
]
