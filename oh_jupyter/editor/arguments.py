"""Validation of a call's arguments, which become a command on one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from oh_jupyter.editor.files.paths import parse_path
from oh_jupyter.editor.messages import REVIEW, invalid, missing
from oh_jupyter.editor.notebook.validation import is_notebook, new_notebook
from oh_jupyter.editor.text import edits
from oh_jupyter.editor.text.edits import EditCommand, NewFile
from oh_jupyter.errors import EditorError

COMMANDS = (
    *("view", "create", "str_replace", "insert", "undo_edit"),
    *("redo_edit", "write", "apply_patch", "notebook_edit"),
)
"""The commands of the editor."""

_EDIT_COMMANDS = ("create", "str_replace", "insert", "write", "notebook_edit")

_T = TypeVar("_T")


@dataclass(frozen=True)
class Arguments:
    """Arguments of the commands, as documented at ``FileEditor.__call__``."""

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

    def __post_init__(self) -> None:
        for name in ("file_text", "old_str", "new_str", "content"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise invalid(name, value, "It should be a string.")


def required(command: str, parameter: str, value: _T | None) -> _T:
    """Return the value; raise an error if it is None."""
    if value is None:
        raise missing(command, parameter)
    return value


def prepare(command: str, path: Path, arguments: Arguments) -> EditCommand | NewFile:
    """Validate a command that changes one file."""
    match command:
        case "create":
            text = required(command, "file_text", arguments.file_text)
            return NewFile(path, new_notebook(path, text))
        case "str_replace":
            return _str_replace(path, arguments)
        case "insert":
            line = required(command, "insert_line", arguments.insert_line)
            text = required(command, "new_str", arguments.new_str)
            edit = edits.insert(path, line, text)
            if is_notebook(path):
                from oh_jupyter.editor.notebook.commands import cell_insert

                return edit.with_compute(cell_insert(path, line, text, edit.compute))
            return edit
        case "write":
            text = required(command, "content", arguments.content)
            return edits.write(path, text, arguments.start, arguments.end)
        case "notebook_edit":
            from oh_jupyter.editor.notebook.commands import cell_edit

            compute = cell_edit(
                path,
                arguments.edit_mode,
                arguments.cell,
                arguments.new_str,
                arguments.cell_type,
                arguments.to,
            )
            return EditCommand(command, path, compute, "", REVIEW)
    raise EditorError(
        f"Unrecognized command {command}. The allowed commands for the oh_editor tool are: "
        + ", ".join(COMMANDS)
    )


def _str_replace(path: Path, arguments: Arguments) -> EditCommand:
    old = required("str_replace", "old_str", arguments.old_str)
    new, every = arguments.new_str or "", bool(arguments.replace_all)
    expected = arguments.expected_replacements
    edit = edits.str_replace(path, old, new, replace_all=every, expected=expected)
    if not is_notebook(path):
        return edit
    from oh_jupyter.editor.notebook.commands import cell_replace

    compute = cell_replace(
        path, old, new, arguments.cell, edit.compute, every=every, expected=expected
    )
    return edit.with_compute(compute)


def prepare_edit(edit: Mapping[str, Any], workspace: Path) -> EditCommand | NewFile:
    """Validate one of several edits, given as a mapping."""
    values = dict(edit)
    command, path = values.pop("command", None), values.pop("path", None)
    if not isinstance(command, str) or path is None:
        raise invalid("edits", edit, "Each edit needs a `command` and a `path`.")
    try:
        arguments = Arguments(**values)
    except TypeError:
        names = ", ".join(field.name for field in fields(Arguments))
        hint = f"The allowed keys besides command and path are: {names}."
        raise invalid("edits", edit, hint) from None
    if command not in _EDIT_COMMANDS:
        raise EditorError(
            f"Unrecognized command {command}. The commands allowed in a combined edit are: "
            + ", ".join(_EDIT_COMMANDS)
        )
    return prepare(command, parse_path(path, workspace), arguments)
