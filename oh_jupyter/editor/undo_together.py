"""Undo and redo of an edit that was made to several files."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.history.commit import FileChange, commit
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.editor.history.file_history import ConcurrentWriteError, FileHistory
from oh_jupyter.editor.history.steps import Step
from oh_jupyter.editor.messages import cannot_write, plural
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import real_path
from oh_jupyter.editor.undo_steps import (
    Contents,
    compute_step,
    just_written,
    read_current,
    result_of,
    target_step,
)
from oh_jupyter.errors import FileChangedError

__all__ = ["_walk_together"]


def _walk_together(
    store: EditHistory, path: Path, command: str, step: Step, *, dry_run: bool
) -> tuple[EditorResult, Contents]:
    """Undo or redo an edit of several files, in all of them.

    A file whose history has forgotten the edit is left as it is; the result says so.

    Args:
        store: The histories.
        path: The file for which it was asked.
        command: ``undo_edit`` or ``redo_edit``.
        step: The edit, as it is in that file's history.
        dry_run: Change nothing.

    Returns:
        What was done, and what the files are now.

    Raises:
        FileChangedError: One of the files was edited since, or somebody else changed the
            same place; nothing was changed.
        EditorError: A file could not be read or written; nothing was changed.
    """
    changes: list[FileChange] = []
    forgotten: list[str] = []
    with store.open_all([Path(file) for file in step.files]) as histories:
        for history in histories:
            before, fingerprint = read_current(history)
            found = target_step(history.timeline, command)
            if found is None or found.transaction != step.transaction:
                if command == "undo_edit" and not _knows(history, step):
                    forgotten.append(str(history.path))
                    continue
                raise _refused(history, step, command)
            timeline, content = compute_step(
                history, history.timeline, before, history.path, command
            )
            changes.append(FileChange(history, timeline, before, content, fingerprint))
        if not dry_run:
            try:
                commit(store, changes)
            except ConcurrentWriteError:
                raise just_written(path) from None
            except OSError as error:
                raise cannot_write(", ".join(step.files), error) from None
    files = [result_of(m.history.path, m.old, m.new, command, dry_run) for m in changes]
    main = next(change for change in changes if change.history.path == real_path(path))
    result = result_of(path, main.old, main.new, command, dry_run)
    others = [str(change.history.path) for change in changes if change is not main]
    verb = "undone" if command == "undo_edit" else "redone"
    result.output += (
        f"It was one edit of {plural(len(step.files), 'file')}; it was {verb} in all of them, also "
        f"in: {', '.join(others)}.\n"
    )
    if forgotten:
        result.output += (
            f"NOTE: The history of {', '.join(forgotten)} does not reach back so far; left as is.\n"
        )
    result.files = files
    return result, {} if dry_run else {change.history.path: change.new for change in changes}


def _knows(history: FileHistory, step: Step) -> bool:
    return any(each.transaction == step.transaction for each in history.timeline.steps)


def _refused(history: FileHistory, step: Step, command: str) -> FileChangedError:
    """Say that the edit is not the last one of a file."""
    what, how = (
        ("undone", "Undo what was done to that file since first, then this.")
        if command == "undo_edit"
        else ("redone", "What was undone there cannot be redone any more.")
    )
    return FileChangedError(
        f"The edit was made to {len(step.files)} files together ({', '.join(step.files)}) and can "
        f"only be {what} in all of them, but {history.path} was changed since. {how} Nothing was "
        "changed."
    )
