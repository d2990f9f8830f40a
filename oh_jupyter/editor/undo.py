"""Undo, redo, and comparing a file with its past."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.history.commit import PlannedChange, commit
from oh_jupyter.editor.history.edit import Edit
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.editor.history.file_history import Conflict, FileHistory
from oh_jupyter.editor.messages import DRY_RUN, cannot_read, cannot_write
from oh_jupyter.editor.reading import show_text
from oh_jupyter.editor.result import EditorResult, Part
from oh_jupyter.editor.state import real_path
from oh_jupyter.editor.text.conflicts import short_diff
from oh_jupyter.editor.text.line_diff import unified_diff
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.errors import EditorError, FileChangedError, HistoryAccessError, NoHistoryError
from oh_jupyter.text import plural

Contents = dict[Path, bytes | None]
"""Current contents by real path; None for a file that does not exist."""

_Current = tuple[bytes | None, atomic_write.Fingerprint | None]


def undo_or_redo(
    store: EditHistory, path: Path, command: str, *, dry_run: bool = False
) -> tuple[EditorResult, Contents]:
    """Undo the last edit of a file, or redo the last undone one, in all files of that edit.

    A file whose history no longer has the edit is skipped, and the result says so.
    """
    forgotten: list[str] = []
    with store.open(path) as history:
        current = read_current(history)
        edit = _target(history, command)
        if edit is None or len(edit.files) < 2:
            changes = [_change(history, edit, current, path, command)]
            edit = None
            _write(store, changes, path, dry_run)
    if edit is not None:
        with store.open_all([real_path(Path(file)) for file in edit.files]) as histories:
            changes, forgotten = _changes_together(histories, edit, command)
            _write(store, changes, path, dry_run)
    real = real_path(path) if len(changes) > 1 else changes[0].history.path
    main = next(change for change in changes if change.history.path == real)
    result = _result(path, main, command, dry_run)
    parts = [Part(result.output)]
    if edit is not None:
        verb = "undone" if command == "undo_edit" else "redone"
        others = ", ".join(str(c.history.path) for c in changes if c is not main)
        parts.append(
            Part(
                f"This edit changed {plural(len(edit.files), 'file')}; it was {verb} in all of "
                f"them, including {others}.\n"
            )
        )
        result.files = [_result(c.history.path, c, command, dry_run) for c in changes]
    if forgotten:
        parts.append(
            Part(
                "NOTE: The edit is no longer in the history of these files, so they are "
                f"unchanged: {', '.join(forgotten)}.\n",
                "note",
            )
        )
    result.say(parts)
    return result, {} if dry_run else {change.history.path: change.new for change in changes}


def _changes_together(
    histories: Sequence[FileHistory], edit: Edit, command: str
) -> tuple[list[PlannedChange], list[str]]:
    """Plan to undo or redo an edit in each of its files; also list those that have forgotten it."""
    changes: list[PlannedChange] = []
    forgotten: list[str] = []
    name = os.urandom(16).hex()
    for history in histories:
        current = read_current(history)
        target = _target(history, command)
        if target is not None and target.together == edit.together:
            changes.append(_change(history, target, current, history.path, command, name))
        elif command == "undo_edit" and not history.has(edit.together):
            forgotten.append(str(history.path))
        else:
            raise _changed_since(history, edit, command)
    return changes, forgotten


def _changed_since(history: FileHistory, edit: Edit, command: str) -> FileChangedError:
    verb, hint = (
        ("undone", "Undo the later edits of that file first.")
        if command == "undo_edit"
        else ("redone", "This edit can no longer be redone.")
    )
    return FileChangedError(
        f"The edit changed {len(edit.files)} files together ({', '.join(edit.files)}) and can only "
        f"be {verb} in all of them, but {history.path} was changed since. {hint} Nothing was "
        "changed."
    )


def _write(store: EditHistory, changes: list[PlannedChange], path: Path, dry_run: bool) -> None:
    """Commit recorded changes, except in a dry run."""
    if dry_run:
        return
    try:
        commit(store.table, changes)
    except ConcurrentWriteError:
        raise FileChangedError(
            f"Someone else wrote {path} at the same moment; nothing was changed. Try again."
        ) from None
    except HistoryAccessError:
        raise
    except OSError as error:
        names = ", ".join(str(change.history.path) for change in changes)
        raise cannot_write(path if len(changes) == 1 else names, error) from None


def diff(store: EditHistory, path: Path, steps: int) -> str:
    """Compare a file with its content some edits ago, as a unified diff."""
    with store.open(path) as history:
        current, _ = read_current(history)
        content = current
        for edit in _undoable(history, steps, path):
            content = _reversed(history, edit, content, path, "undo_edit")
    return unified_diff(decoded(content), decoded(current), str(path), context=3)


def _undoable(history: FileHistory, count: int, path: Path) -> list[Edit]:
    """Return the last edits, the newest first."""
    done = [edit for edit in history.entries() if edit.state == "done"]
    is_deleted = bool(done) and done[-1].is_deletion_by_others
    edits = [edit for edit in done if edit.kind == "edit"] + done[-1:] * is_deleted
    if len(edits) < count:
        raise NoHistoryError(f"No edit history found for {path}.")
    return edits[::-1][:count]


def read_current(history: FileHistory) -> _Current:
    """Read a file, and record what others did to it since the editor last wrote it."""
    try:
        current = atomic_write.read_if_exists(history.path)
    except OSError as error:
        raise cannot_read(history.path, error) from None
    history.sync(current[0])
    return current


def _target(history: FileHistory, command: str) -> Edit | None:
    """Return the edit that a command would undo or redo."""
    return history.last if command == "undo_edit" else history.next


def _change(
    history: FileHistory,
    edit: Edit | None,
    current: _Current,
    path: Path,
    command: str,
    together: str = "",
) -> PlannedChange:
    old, fingerprint = current
    undoes = command == "undo_edit"
    if edit is None:
        missing = "edit history" if undoes else "undone edit"
        raise NoHistoryError(f"No {missing} found for {path}.")
    new = _reversed(history, edit, old, path, command)
    row = history.plan_reversal("undo" if undoes else "redo", edit, old, new, together)
    return PlannedChange(history, row, old, new, fingerprint)


def _reversed(
    history: FileHistory, edit: Edit, current: bytes | None, path: Path, command: str
) -> bytes | None:
    """Return the content without an edit, or with it again; None removes the file."""
    undoes = command == "undo_edit"
    try:
        return (history.undone if undoes else history.redone)(edit, current)
    except Conflict as conflict:
        changes = short_diff(path, decoded(conflict.base), decoded(current))
        raise FileChangedError(
            f"{path} was changed by somebody else in the lines that would be "
            f"{'undone' if undoes else 'redone'}; nothing was changed. Revert that change first, "
            f"or edit the lines with `str_replace`. Their change:\n{changes}"
        ) from None
    except (LookupError, ValueError) as error:
        raise EditorError(
            f"The edit history of {path} is damaged ({error}); nothing was changed. "
            "Its edits can no longer be undone."
        ) from None


def _result(path: Path, change: PlannedChange, command: str, dry_run: bool) -> EditorResult:
    old, new = _parsed(change.old), _parsed(change.new)
    done = "Last edit to {} undone" if command == "undo_edit" else "Last undone edit to {} redone"
    view = show_text(new, path) if new is not None else "The file no longer exists.\n"
    output = f"{DRY_RUN * dry_run}{done.format(path)} successfully. {view}"
    before, after = (None if file is None else file.text for file in (old, new))
    return EditorResult(output, None, str(path), old is not None, before, after, dry_run=dry_run)


def decoded(content: bytes | None) -> str:
    """Return the text of a content; "" for None."""
    file = _parsed(content)
    return file.text if file is not None else ""


def _parsed(content: bytes | None) -> TextFile | None:
    if content is None:
        return None
    return TextFile.parse(content) or TextFile(content.decode("utf-8", "replace").encode())
