"""Edits of several places and files that are made together, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from oh_jupyter.editor.history.commit import commit
from oh_jupyter.editor.history.file_history import ConcurrentWriteError
from oh_jupyter.editor.messages import DRY_RUN, cannot_write
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.state import MAX_ATTEMPTS, EditorState, real_path, still_being_written
from oh_jupyter.errors import FileChangedError

__all__ = ["Build", "run"]

Build = Callable[[Stage], str]
"""Makes the edits on the stage and returns what to say about them."""


def run(
    state: EditorState,
    paths: Iterable[Path],
    build: Build,
    *,
    command: str,
    path: Path,
    linting: bool = False,
    dry_run: bool = False,
) -> EditorResult:
    """Make an edit of any number of files, as one step that can be undone.

    Args:
        state: What the editor knows.
        paths: All files that it may concern.
        build: Makes the edit; called again if somebody else writes one of the files.
        command: What the history is to call it.
        path: What the result is to name as its path.
        linting: Report what the edit broke.
        dry_run: Write nothing.

    Returns:
        What was done, with a result for each file that was changed.

    Raises:
        EditorError: It was refused, as a whole; nothing was changed.
    """
    targets = list(dict.fromkeys(real_path(path) for path in paths))
    state.finish_interrupted(*targets)
    if dry_run:
        stage = Stage(state)
        said = build(stage)
        notes = stage.check_conflicts()
    else:
        stage, said, notes = _write(state, targets, build, command)
    files = [staged.result(dry_run=dry_run) for staged in stage.changed]
    if linting:
        from oh_jupyter.editor.lint.edit_lint import lint_report

        said += "".join(
            f"\n{lint_report(Path(file.path), file.old_content or '', file.new_content)}\n"
            for file in files
            if file.new_content is not None
        )
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


def _write(
    state: EditorState, targets: Sequence[Path], build: Build, command: str
) -> tuple[Stage, str, dict[Path, str]]:
    with state.history.open_all(targets) as histories:
        for _ in range(MAX_ATTEMPTS):
            stage = Stage(state)
            try:
                said = build(stage)
                notes = stage.check_conflicts()
            except FileChangedError:
                stage.remember_shown()
                raise
            made: list[Path] = []
            try:
                made = _make_parents(stage)
                changes = stage.changes(histories, command)
                if changes:
                    commit(state.history, changes)
            except ConcurrentWriteError:
                _remove(made)
                continue
            except OSError as error:
                _remove(made)
                names = ", ".join(str(staged.path) for staged in stage.changed)
                raise cannot_write(names, error) from None
            except BaseException:
                _remove(made)
                raise
            stage.remember()
            return stage, said, notes
    raise still_being_written(", ".join(map(str, targets)))


def _make_parents(stage: Stage) -> list[Path]:
    """Make the directories of new files; returns those that were not there, outermost first."""
    made: list[Path] = []
    try:
        for staged in stage.changed:
            parent = staged.path.parent
            if staged.file is None or parent.is_dir():
                continue
            missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir(exist_ok=True)
                made.append(folder)
    except OSError:
        _remove(made)
        raise
    return made


def _remove(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # somebody put something into it
            os.rmdir(folder)
