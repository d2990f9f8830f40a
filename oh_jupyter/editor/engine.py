"""The pipeline of every edit: read, compute, check, write and report, for one file or many.

It is built on a stage under the locks of its files, anew if somebody else writes one meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.files.paths import check_path
from oh_jupyter.editor.history.commit import commit
from oh_jupyter.editor.messages import (
    DRY_RUN,
    REVIEW,
    cannot_write,
    file_exists,
    invalid,
    plural,
    still_being_written,
    too_large,
)
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage, StagedFile
from oh_jupyter.editor.state import EditorState, real_path
from oh_jupyter.editor.text.edits import Command, NewFile
from oh_jupyter.editor.text.views import number_lines
from oh_jupyter.errors import EditorError, FileChangedError, HistoryAccessError

_MAX_ATTEMPTS = 3  # while somebody else keeps writing a file

_T = TypeVar("_T")


def apply(
    state: EditorState,
    command: Command | NewFile,
    *,
    linting: bool = False,
    dry_run: bool = False,
) -> EditorResult:
    """Carry out one command on one file."""
    stage, path = Stage(state), command.path
    (said, note), _ = _make(
        stage, [path], lambda stage: _stage_command(stage, command), dry_run=dry_run
    )
    staged = stage.at(path)
    new = command if isinstance(command, NewFile) else command.if_missing
    result = staged.result(dry_run=dry_run)
    result.output = DRY_RUN * dry_run + said
    if staged.command != "create" and isinstance(command, Command):
        result.output += (_lint(result) if linting else "") + command.review + note
    elif new is not None:
        result.new_content = new.text  # with the line ends that were given
    return result


def apply_all(
    state: EditorState,
    paths: Iterable[Path],
    build: Callable[[Stage], str],
    *,
    command: str,
    path: Path,
    linting: bool = False,
    dry_run: bool = False,
) -> EditorResult:
    """Make an edit of any number of files, one step, by ``build``, which may be called again."""
    stage, targets = Stage(state), list(paths)
    state.finish_interrupted(*targets)
    said, notes = _make(stage, targets, build, command, dry_run=dry_run)
    files = [staged.result(dry_run=dry_run) for staged in stage.changed]
    if linting:
        said += "".join(_lint(file) for file in files if file.new_content is not None)
    only = files[0] if len(files) == 1 else EditorResult("")
    return EditorResult(
        DRY_RUN * dry_run + said + "".join(notes.values()),
        path=str(path),
        prev_exist=only.prev_exist,
        old_content=only.old_content,
        new_content=only.new_content,
        dry_run=dry_run,
        files=files,
    )


def overwrite(
    state: EditorState, path: Path, compute: Callable[[bytes | None], bytes], mode: int | None
) -> None:
    """Write a file as a whole, as a step that can be undone, without any check."""
    _write(Stage(state), [path], lambda stage: stage.overwrite(path, compute, mode), "")


def _make(
    stage: Stage,
    paths: list[Path],
    build: Callable[[Stage], _T],
    command: str = "",
    *,
    dry_run: bool,
) -> tuple[_T, dict[Path, str]]:
    if dry_run:
        return build(stage), stage.check_conflicts()
    try:
        return _write(stage, paths, build, command)
    except HistoryAccessError:
        raise
    except OSError as error:
        names = ", ".join(str(staged.path) for staged in stage.changed)
        raise cannot_write(names, error) from None


def _write(
    stage: Stage, paths: list[Path], build: Callable[[Stage], _T], command: str
) -> tuple[_T, dict[Path, str]]:
    """Build the edit and write it; what it says, and notes on what others changed."""
    history = stage.state.history
    targets = list(dict.fromkeys(map(real_path, paths)))
    with history.open_all(targets) as histories:
        for _ in range(_MAX_ATTEMPTS):
            stage.reset()
            try:
                said = build(stage)
                notes = stage.check_conflicts()
            except FileChangedError:
                stage.remember_shown()
                raise
            parents: list[Path] = []
            try:
                _make_parents(stage.changed, parents)
                commit(history.journal, stage.plan(histories, command))
            except BaseException as error:
                _remove(parents)
                if isinstance(error, ConcurrentWriteError):
                    continue
                raise
            stage.remember()
            return said, notes
    raise still_being_written(", ".join(map(str, targets)))


def _make_parents(files: list[StagedFile], made: list[Path]) -> None:
    """Make the directories of new files; list those that were not there, outermost first."""
    for staged in files:
        parent = staged.path.parent
        if staged.new is None or parent.is_dir():
            continue
        missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            made.append(folder)


def _remove(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # somebody put something into it
            os.rmdir(folder)


def _lint(file: EditorResult) -> str:
    from oh_jupyter.editor.lint import lint_report

    return f"\n{lint_report(Path(file.path), file.old_content or '', file.new_content or '')}\n"


def _stage_command(stage: Stage, command: Command | NewFile) -> tuple[str, str]:
    """Carry out one command on the stage; what to say, and a note to add."""
    path = command.path
    staged = stage.at(path)
    if isinstance(command, Command) and command.if_missing is not None and staged.text is None:
        command = command.if_missing
    if isinstance(command, NewFile):
        return _stage_new(stage, staged, command), ""
    if staged.text is None:
        check_path(command.name, path, restorable=False)  # says so, and what is similar
        raise invalid("path", path, f"The path {path} does not exist. It was removed before.")
    # Once a command has changed it, the lines are not those that were shown.
    edit, note = command.compute(staged.text, staged.shown if not staged.commands else None)
    text = stage.put(path, edit.data).text
    assert text is not None
    staged.by_line_number |= staged.commands > 0 and command.name in ("insert", "write")
    staged.commands += 1
    staged.command = command.name
    shown = edit.excerpt
    if shown is None:
        shown = text.around(edit.offset, edit.before, edit.after)
    snippet = number_lines(shown, edit.caption or command.caption, edit.first)
    return f"The file {path} has been edited. {snippet}", note


def _stage_new(stage: Stage, staged: StagedFile, command: NewFile) -> str:
    path = command.path
    if staged.text is not None:
        raise file_exists(path)
    stage.put(path, encode_new(path, command.text, stage.state.max_file_bytes))
    staged.commands += 1
    staged.command = command.name
    said = f"File created successfully at: {path}"
    if not path.parent.exists():
        said += f"\nThe directory {path.parent} did not exist and was created."
    return said


def encode_new(path: Path, text: str, max_bytes: int) -> bytes:
    """Encode the text of a new file as UTF-8."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise invalid("file_text", ascii(text), f"It cannot be encoded: {error}.") from None
    if len(data) > max_bytes:
        raise too_large(path, len(data), max_bytes)
    return data


def combine(commands: list[Command | NewFile]) -> Callable[[Stage], str]:
    """Make one edit of several commands, carried out in their order."""

    def build(stage: Stage) -> str:
        said = []
        for number, command in enumerate(commands, 1):
            try:
                text, note = _stage_command(stage, command)
            except EditorError as error:
                if len(commands) == 1:
                    raise
                raise type(error)(
                    f"{error}\nThis is edit {number} of {len(commands)} ({command.name} in "
                    f"{command.path}); nothing was changed, by none of them."
                ) from None
            said.append(text + note.lstrip())
        count = plural(len({command.path for command in commands}), "file")
        return (
            f"{plural(len(commands), 'edit')} of {count} made together, as one step.\n"
            + "".join(text if text.endswith("\n") else text + "\n" for text in said)
            + REVIEW
        )

    return build


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
        parse: Callable[[Mapping[str, Any]], Command | NewFile],
        make: Callable[[list[Mapping[str, Any]]], EditorResult],
    ) -> None:
        """Begin with no edits; ``make`` carries out those that ``parse`` accepted."""
        self._stage = stage
        self._parse = parse
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
        command = self._parse(edit)
        said, note = _stage_command(self._stage, command)
        self._edits.append(edit)
        return replace(self._stage.at(command.path).result(dry_run=True), output=said + note)

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
    """Check that edits are a list of arguments."""
    given = [edits] if isinstance(edits, str | bytes | Mapping) else list(edits)
    if not given or not all(isinstance(edit, Mapping) for edit in given) or given == [edits]:
        raise invalid(
            "edits",
            edits,
            "It should be a list of dicts, each with the arguments of one command.",
        )
    return given
