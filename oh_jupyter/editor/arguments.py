"""Arguments of a call, checked and turned into a command on one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from oh_jupyter.editor.messages import REVIEW, invalid, missing
from oh_jupyter.editor.notebook.validation import is_notebook, new_notebook
from oh_jupyter.editor.text import edits
from oh_jupyter.editor.text.edits import Command, NewFile
from oh_jupyter.errors import EditorError

COMMANDS = (
    "view",
    "create",
    "str_replace",
    "insert",
    "undo_edit",
    "redo_edit",
    "write",
    "apply_patch",
    "notebook_edit",
)
"""The commands that the editor knows."""

EDIT_COMMANDS = ("create", "str_replace", "insert", "write", "notebook_edit")
"""Those that ``prepare`` knows: they change one file."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Arguments:
    """What the commands take, as documented at ``FileEditor.__call__``."""

    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    content: str | None = None
    start: int = 0
    end: int = -1
    cell: int | str | None = None
    edit_mode: str = "replace"
    cell_type: str | None = None
    to: int | None = None
    replace_all: bool = False
    expected_replacements: int | None = None

    def check(self) -> None:
        """Refuse texts that are no strings."""
        for name in ("file_text", "old_str", "new_str", "content"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise invalid(name, value, "It should be a string.")

    def required(self, command: str, parameter: str, value: _T | None) -> _T:
        """Refuse a call without the parameter."""
        if value is None:
            raise missing(command, parameter)
        return value


def prepare(command: str, path: Path, given: Arguments) -> Command | NewFile:
    """Validated command that changes one file."""
    match command:
        case "create":
            text = given.required(command, "file_text", given.file_text)
            return NewFile(path, new_notebook(path, text))
        case "str_replace":
            return _str_replace(path, given)
        case "insert":
            line = given.required(command, "insert_line", given.insert_line)
            text = given.required(command, "new_str", given.new_str)
            edit = edits.insert(path, line, text)
            if is_notebook(path):
                from oh_jupyter.editor.notebook import commands as cells

                return edit.with_compute(cells.cell_insert(path, line, text, edit.compute))
            return edit
        case "write":
            text = given.required(command, "content", given.content)
            return edits.write(path, text, given.start, given.end)
        case "notebook_edit":
            from oh_jupyter.editor.notebook import commands as cells

            compute = cells.cell_edit(
                path, given.edit_mode, given.cell, given.new_str, given.cell_type, given.to
            )
            return Command(command, path, compute, "", REVIEW)
    raise EditorError(
        f"Unrecognized command {command}. The allowed commands for the oh_editor tool are: "
        + ", ".join(COMMANDS)
    )


def _str_replace(path: Path, given: Arguments) -> Command:
    old, new = given.required("str_replace", "old_str", given.old_str), given.new_str or ""
    every, expected = given.replace_all, given.expected_replacements
    edit = edits.str_replace(path, old, new, replace_all=every, expected=expected)
    if not is_notebook(path):
        return edit
    from oh_jupyter.editor.notebook import commands as cells

    return edit.with_compute(
        cells.cell_replace(
            path, old, new, given.cell, edit.compute, every=bool(every), expected=expected
        )
    )
