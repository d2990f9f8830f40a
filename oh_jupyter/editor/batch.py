"""Several commands as one edit: all of them are carried out, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from oh_jupyter.editor.changes import encoded
from oh_jupyter.editor.files.paths import check_path
from oh_jupyter.editor.messages import REVIEW, invalid, plural
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.text.commands import Command, NewFile
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.editor.text.views import number_lines
from oh_jupyter.errors import EditorError

__all__ = ["Transaction", "build_all", "check_edits", "stage_command"]


def stage_command(stage: Stage, command: Command | NewFile, max_file_bytes: int) -> str:
    """Carry out one command on files that are not written yet.

    Args:
        stage: The files.
        command: The command.
        max_file_bytes: The size in bytes above which a file is refused.

    Returns:
        What to say about it.

    Raises:
        EditorError: It was refused.
    """
    path = command.path
    staged = stage.at(path)
    if isinstance(command, Command) and command.if_missing is not None and staged.file is None:
        command = command.if_missing
    if isinstance(command, NewFile):
        if staged.file is not None:
            raise invalid(
                "path",
                path,
                f"File already exists at: {path}. Cannot overwrite files using command `create`.",
            )
        stage.put(path, encoded(path, command.text, max_file_bytes))
        return f"File created successfully at: {path}\n"
    if staged.file is None:
        check_path(command.name, path, restorable=False)  # says so, and what is similar
        raise invalid("path", path, f"The path {path} does not exist. It was removed before.")
    if staged.shown is not None and command.name in ("insert", "write"):
        if staged.file is staged.base:
            command.compute(staged.file, staged.shown)  # refuses if the numbers may be others now
        else:
            staged.by_line_number = True
    edit, note = command.compute(staged.file, None)
    stage.put(path, edit.data)
    new = TextFile(edit.data, staged.file.encoding)
    shown = edit.excerpt
    if shown is None:
        shown = new.around(edit.offset, edit.before, edit.after)
    snippet = number_lines(shown, edit.caption or command.caption, edit.first)
    return f"The file {path} has been edited. {snippet}{note.lstrip()}"


def build_all(
    commands: list[Command | NewFile], max_file_bytes: int
) -> tuple[list[Path], Callable[[Stage], str]]:
    """Make one edit of several commands.

    Args:
        commands: The commands, in the order in which they are carried out.
        max_file_bytes: The size in bytes above which a file is refused.

    Returns:
        The files that it concerns, and what makes the edit.
    """

    def build(stage: Stage) -> str:
        said = []
        for number, command in enumerate(commands, 1):
            try:
                said.append(stage_command(stage, command, max_file_bytes))
            except EditorError as error:
                raise _refused(number, len(commands), command, error) from None
        count = plural(len({command.path for command in commands}), "file")
        return (
            f"{plural(len(commands), 'edit')} of {count} made together, as one step.\n"
            + "".join(text if text.endswith("\n") else text + "\n" for text in said)
            + REVIEW
        )

    return [command.path for command in commands], build


def _refused(
    number: int, count: int, command: Command | NewFile, error: EditorError
) -> EditorError:
    """Say which of several edits was refused.

    Args:
        number: Its position, counted from 1.
        count: How many there are.
        command: The command.
        error: Why it was refused.

    Returns:
        An error of the same kind.
    """
    if count == 1:
        return error
    return type(error)(
        f"{error}\nThis is edit {number} of {count} ({command.name} in {command.path}); "
        "nothing was changed, by none of them."
    )


class Transaction:
    """Collects edits; the end of the ``with`` block makes all of them, or none.

    Call it like the editor itself. Every edit is checked when it is given, on the files
    as the edits before it leave them. If the block is left by an error, nothing is done.

    Attributes:
        result: What was done; None before the end of the block.
    """

    def __init__(
        self,
        stage: Stage,
        check: Callable[[Stage, Mapping[str, Any]], EditorResult],
        make: Callable[[list[Mapping[str, Any]]], EditorResult],
    ) -> None:
        """Begin with no edits.

        Args:
            stage: Files as the edits leave them.
            check: Makes one edit on the stage.
            make: Makes all edits on the files.
        """
        self._stage = stage
        self._check = check
        self._make = make
        self._edits: list[Mapping[str, Any]] = []
        self.result: EditorResult | None = None

    def __call__(self, **edit: Any) -> EditorResult:
        """Add an edit.

        Args:
            **edit: The arguments of the editor for one command that changes a file.

        Returns:
            What it is going to do.

        Raises:
            EditorError: It was refused; the edits before it are still there.
        """
        told = self._check(self._stage, edit)
        self._edits.append(edit)
        return told

    def __enter__(self) -> Transaction:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make all edits, unless the block failed."""
        if kind is None and self._edits:
            self.result = self._make(self._edits)


def check_edits(edits: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Check that edits are a list of arguments.

    Args:
        edits: What was given.

    Returns:
        The edits.

    Raises:
        EditorParameterInvalidError: They are something else, or there are none.
    """
    given = [edits] if isinstance(edits, str | bytes | Mapping) else list(edits)
    if not given or not all(isinstance(edit, Mapping) for edit in given) or given == [edits]:
        raise invalid(
            "edits",
            edits,
            "It should be a list of dicts, each with the arguments of one command.",
        )
    return given
