"""The pipeline of every edit: read, compute, check, write and report, for one file or many.

The edit is built on a stage while its files are locked, and rebuilt if somebody else writes one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from oh_jupyter.editor.arguments import prepare_edit
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.files.path_guard import make_parents, pinned
from oh_jupyter.editor.files.paths import check_path
from oh_jupyter.editor.history.commit import commit
from oh_jupyter.editor.messages import (
    DRY_RUN,
    REVIEW,
    cannot_write,
    file_exists,
    invalid,
    too_large,
)
from oh_jupyter.editor.result import EditorResult, Part
from oh_jupyter.editor.stage import Stage, StagedFile
from oh_jupyter.editor.state import EditorState
from oh_jupyter.editor.text.edits import EditCommand, NewFile
from oh_jupyter.editor.text.views import number_lines
from oh_jupyter.errors import EditorError, FileChangedError, HistoryAccessError
from oh_jupyter.text import plural

_MAX_ATTEMPTS = 3  # while somebody else keeps writing a file

_T = TypeVar("_T")


@dataclass(frozen=True)
class EditOptions:
    """Options of an edit."""

    linting: bool = False
    dry_run: bool = False


def apply(state: EditorState, command: EditCommand | NewFile, options: EditOptions) -> EditorResult:
    """Apply one command to one file."""
    stage, path = Stage(state), command.path
    build = partial(_stage_command, command=command)
    (done, note), _ = _make(stage, [path], build, "", options.dry_run)
    staged = stage.at(path)
    new = command if isinstance(command, NewFile) else command.if_missing
    result = staged.result(dry_run=options.dry_run)
    parts = [Part(DRY_RUN * options.dry_run), *done]
    if staged.command != "create" and isinstance(command, EditCommand):
        parts += _lint(result) if options.linting else []
        parts += [Part(command.review, "advice"), Part(note, "note")]
    elif new is not None:
        result.new_content = new.text  # with the caller's line ends
    result.say(parts)
    return result


def apply_all(
    state: EditorState,
    paths: Iterable[Path],
    build: Callable[[Stage], list[Part]],
    command: str,
    path: Path,
    options: EditOptions,
) -> EditorResult:
    """Apply an edit of any number of files as one step; ``build`` may be called repeatedly."""
    stage, targets, dry_run = Stage(state), list(paths), options.dry_run
    state.finish_interrupted(*targets)
    done, notes = _make(stage, targets, build, command, dry_run)
    files = [staged.result(dry_run=dry_run) for staged in stage.changed]
    parts = [Part(DRY_RUN * dry_run), *done]
    if options.linting:
        parts += [part for file in files if file.new_content is not None for part in _lint(file)]
    only = files[0] if len(files) == 1 else EditorResult("")
    result = replace(only, path=str(path), dry_run=dry_run, files=files)
    result.say([*parts, *(Part(note, "note") for note in notes.values())])
    return result


def apply_together(
    state: EditorState, commands: Sequence[EditCommand | NewFile], options: EditOptions
) -> EditorResult:
    """Apply several commands in order, as one edit."""

    def build(stage: Stage) -> list[Part]:
        files = plural(len({command.path for command in commands}), "file")
        edits = plural(len(commands), "edit")
        parts = [Part(f"{edits} of {files} made together, as one step.\n")]
        for number, command in enumerate(commands, 1):
            try:
                done, note = _stage_command(stage, command)
            except EditorError as error:
                if len(commands) == 1:
                    raise
                raise type(error)(
                    f"{error}\nThis is edit {number} of {len(commands)} ({command.name} in "
                    f"{command.path}); none of the edits was applied."
                ) from None
            *before, last = [*done, Part(note.lstrip(), "note")] if note else done
            parts += [*before, last._replace(text=last.text.removesuffix("\n") + "\n")]
        return [*parts, Part(REVIEW, "advice")]

    paths = [command.path for command in commands]
    return apply_all(state, paths, build, "edit_many", paths[0], options)


def overwrite(
    state: EditorState, path: Path, compute: Callable[[bytes | None], bytes], mode: int | None
) -> None:
    """Write a whole file as a step that can be undone, without any check."""
    _write(Stage(state), [path], lambda stage: stage.overwrite(path, compute, mode), "")


def _make(
    stage: Stage, paths: list[Path], build: Callable[[Stage], _T], command: str, dry_run: bool
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
    """Build the edit and write it; return the built value, and notes on others' changes."""
    history = stage.state.history
    targets = list(dict.fromkeys(map(stage.real_path, paths)))
    with history.open_all(targets, are_real=True) as histories:
        for _ in range(_MAX_ATTEMPTS):
            stage.reset()
            try:
                built = build(stage)
                notes = stage.check_conflicts()
            except FileChangedError:
                stage.remember_shown()
                raise
            parents: list[Path] = []
            try:
                _make_parents(stage.changed, parents)
                commit(history.table, stage.plan(histories, command))
            except BaseException as error:
                for folder in reversed(parents):
                    # It may no longer be empty.
                    with suppress(OSError), pinned(folder) as target:
                        os.rmdir(target)
                if isinstance(error, ConcurrentWriteError):
                    continue
                raise
            stage.remember()
            return built, notes
    raise FileChangedError(
        f"Someone else keeps writing {', '.join(map(str, targets))}; nothing was changed. Try "
        "again later."
    )


def _make_parents(files: list[StagedFile], made: list[Path]) -> None:
    """Create the directories of new files, and add them to a list, outermost first."""
    for staged in files:
        parent = staged.path.parent
        if staged.new is None or staged.old is not None or parent.is_dir():
            continue
        made += make_parents(staged.path)


def _lint(file: EditorResult) -> list[Part]:
    from oh_jupyter.editor.lint import NO_FINDINGS, lint_report

    report = lint_report(Path(file.path), file.old_content or "", file.new_content or "")
    return [Part(f"\n{report}\n", "done" if report == NO_FINDINGS else "note")]


def _stage_command(stage: Stage, command: EditCommand | NewFile) -> tuple[list[Part], str]:
    """Apply one command on the stage; return what was done with an excerpt, and a note."""
    path = command.path
    staged = stage.at(path)
    if isinstance(command, EditCommand) and command.if_missing is not None and staged.text is None:
        command = command.if_missing
    if isinstance(command, NewFile):
        return [Part(_stage_new(stage, staged, command))], ""
    if staged.text is None:
        check_path(command.name, path, restorable=False)  # raises, and suggests a similar name
        raise invalid("path", path, f"The path {path} does not exist: it was removed before.")
    # Once a command has changed the file, the lines are no longer those that were shown.
    edit, note = command.compute(staged.text, staged.shown if not staged.commands else None)
    text = stage.put(path, edit.data).text
    assert text is not None
    staged.by_line_number |= staged.commands > 0 and command.name in ("insert", "write")
    staged.commands += 1
    staged.command = command.name
    excerpt = edit.excerpt
    if excerpt is None:
        excerpt = text.around(edit.offset, edit.before, edit.after)
    snippet = number_lines(excerpt, edit.caption or command.caption, edit.first)
    return [Part(f"The file {path} has been edited."), Part(f" {snippet}", "excerpt")], note


def _stage_new(stage: Stage, staged: StagedFile, command: NewFile) -> str:
    path = command.path
    if staged.text is not None:
        raise file_exists(path)
    stage.put(path, encode_new(path, command.text, stage.state.max_file_bytes))
    staged.commands += 1
    staged.command = command.name
    output = f"File created successfully at: {path}"
    if not path.parent.exists():
        output += f"\nThe directory {path.parent} did not exist and was created."
    return output


def encode_new(path: Path, text: str, max_bytes: int) -> bytes:
    """Encode the text of a new file as UTF-8."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise invalid("file_text", ascii(text), f"It cannot be encoded: {error}.") from None
    if len(data) > max_bytes:
        raise too_large(path, len(data), max_bytes)
    return data


class Transaction:
    """Collects edits; the end of the ``with`` block applies all of them, or none.

    Call it like the editor itself. Each edit is checked at once, on the files as the previous
    edits leave them. If the block raises an error, nothing is written.

    Attributes:
        result: The result of the edits; None before the end of the block.
    """

    def __init__(self, state: EditorState, options: EditOptions) -> None:
        """Start without edits."""
        self._state = state
        self._stage = Stage(state)
        self._options = options
        self._commands: list[EditCommand | NewFile] = []
        self.result: EditorResult | None = None

    def __call__(self, **edit: Any) -> EditorResult:
        """Add an edit.

        Args:
            **edit: The arguments of one editor command that changes a file.

        Returns:
            The planned change.

        Raises:
            EditorError: The edit was rejected; the previous ones are kept.
        """
        command = prepare_edit(edit, self._state.workspace)
        done, note = _stage_command(self._stage, command)
        self._commands.append(command)
        result = self._stage.at(command.path).result(dry_run=True)
        result.say([*done, Part(note, "note")])
        return result

    def __enter__(self) -> Transaction:
        """Start the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Apply all edits, unless the block failed."""
        if kind is None and self._commands:
            self.result = apply_together(self._state, self._commands, self._options)
