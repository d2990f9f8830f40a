"""Undo, redo, and comparing a file with its past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.atomic_write import ConcurrentWriteError
from oh_jupyter.editor.history.commit import FileChange, commit
from oh_jupyter.editor.history.edit_history import EditHistory
from oh_jupyter.editor.history.file_history import FileHistory
from oh_jupyter.editor.history.steps import Step
from oh_jupyter.editor.history.timeline import Conflict, Timeline
from oh_jupyter.editor.messages import DRY_RUN, cannot_read, cannot_write, plural
from oh_jupyter.editor.reading import show_text
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import real_path
from oh_jupyter.editor.text.conflicts import short_diff
from oh_jupyter.editor.text.line_diff import unified_diff
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.errors import (
    EditorError,
    FileChangedError,
    HistoryAccessError,
    NoHistoryError,
)

Contents = dict[Path, bytes | None]
"""Files, links followed, and what they are now; None if one is not there."""

_Current = tuple[bytes | None, atomic_write.Fingerprint | None]


def undo_or_redo(
    store: EditHistory, path: Path, command: str, *, dry_run: bool = False
) -> tuple[EditorResult, Contents]:
    """Undo the last edit of a file, or redo the one that was undone last, in all of its files.

    A file whose history has forgotten it is left as it is, and the result says so.
    """
    with store.open(path) as history:
        current = read_current(history)
        step = _target(history.timeline, command)
        if step is None or len(step.files) < 2:
            changes = [_change(history, current, path, command)]
            write(store, changes, path, dry_run)
            return _told(changes, path, command, dry_run)
    with store.open_all([Path(file) for file in step.files]) as histories:
        changes, forgotten = _together(histories, step, command)
        write(store, changes, path, dry_run)
    result, contents = _told(changes, path, command, dry_run)
    others = [str(c.history.path) for c in changes if c.history.path != real_path(path)]
    verb = "undone" if command == "undo_edit" else "redone"
    result.output += (
        f"It was one edit of {plural(len(step.files), 'file')}; it was {verb} in all of them, also "
        f"in: {', '.join(others)}.\n"
    )
    if forgotten:
        result.output += (
            f"NOTE: The history of {', '.join(forgotten)} does not reach back so far; left as is.\n"
        )
    result.files = [_result(c.history.path, c.old, c.new, command, dry_run) for c in changes]
    return result, contents


def _together(
    histories: Sequence[FileHistory], step: Step, command: str
) -> tuple[list[FileChange], list[str]]:
    """Step each file of an edit back or forth; list those that have forgotten it."""
    changes: list[FileChange] = []
    forgotten: list[str] = []
    for history in histories:
        current = read_current(history)
        found = _target(history.timeline, command)
        if found is not None and found.transaction == step.transaction:
            changes.append(_change(history, current, history.path, command))
        elif command == "undo_edit" and not _knows(history, step):
            forgotten.append(str(history.path))
        else:
            raise _changed_since(history, step, command)
    return changes, forgotten


def _knows(history: FileHistory, step: Step) -> bool:
    return any(each.transaction == step.transaction for each in history.timeline.steps)


def _changed_since(history: FileHistory, step: Step, command: str) -> FileChangedError:
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


def write(store: EditHistory, changes: list[FileChange], path: Path, dry_run: bool) -> None:
    """Commit changes that are recorded; nothing for a dry run."""
    if dry_run:
        return
    try:
        commit(store.journal, changes)
    except ConcurrentWriteError:
        raise FileChangedError(
            f"Somebody else wrote {path} in this moment; nothing was changed. Try again."
        ) from None
    except HistoryAccessError:
        raise
    except OSError as error:
        names = ", ".join(str(change.history.path) for change in changes)
        raise cannot_write(path if len(changes) == 1 else names, error) from None


def diff(store: EditHistory, path: Path, steps: int) -> str:
    """Compare a file with what it was some edits ago, as a unified diff."""
    with store.open(path) as history:
        current, _ = read_current(history)
        timeline, content = history.timeline, current
        for _ in range(steps):
            timeline, content = _step(history, timeline, content, path, "undo_edit")
    return unified_diff(decoded(content), decoded(current), str(path), context=3)


def read_current(history: FileHistory) -> _Current:
    """Read a file, and take in what happened to it since the editor last wrote it."""
    try:
        current = atomic_write.read_if_there(history.path)
    except OSError as error:
        raise cannot_read(history.path, error) from None
    history.sync(current[0])
    return current


def _target(timeline: Timeline, command: str) -> Step | None:
    """The step that a command takes back or makes again."""
    return timeline.last if command == "undo_edit" else timeline.next


def _change(history: FileHistory, current: _Current, path: Path, command: str) -> FileChange:
    old, fingerprint = current
    timeline, content = _step(history, history.timeline, old, path, command)
    return FileChange(history, timeline, old, content, fingerprint)


def _step(
    history: FileHistory, timeline: Timeline, current: bytes | None, path: Path, command: str
) -> tuple[Timeline, bytes | None]:
    """Compute the timeline after one step, and what the file becomes; None to remove it."""
    step = timeline.undo if command == "undo_edit" else timeline.redo
    try:
        return step(current, history.blobs)
    except NoHistoryError:
        what = "edit history" if command == "undo_edit" else "undone edit"
        raise NoHistoryError(f"No {what} found for {path}.") from None
    except Conflict as conflict:
        raise _conflict(path, command, decoded(conflict.before), decoded(current)) from None
    except (LookupError, ValueError) as error:
        raise EditorError(
            f"The edit history of {path} is damaged ({error}); nothing was changed. "
            "Its steps cannot be undone any more."
        ) from None


def _conflict(path: Path, command: str, before: str, now: str) -> FileChangedError:
    what = "undone" if command == "undo_edit" else "redone"
    return FileChangedError(
        f"{path} was changed by somebody else in the place that would be {what}; nothing was "
        "changed. Take that change back first, or write the place as it is to be with "
        f"`str_replace`. What they changed:\n{short_diff(path, before, now)}"
    )


def _told(
    changes: Sequence[FileChange], path: Path, command: str, dry_run: bool
) -> tuple[EditorResult, Contents]:
    """Result for the file that was asked for, and what all files are now."""
    main = next(change for change in changes if change.history.path == real_path(path))
    result = _result(path, main.old, main.new, command, dry_run)
    return result, {} if dry_run else {change.history.path: change.new for change in changes}


def _result(
    path: Path, before: bytes | None, after: bytes | None, command: str, dry_run: bool
) -> EditorResult:
    old, new = _parsed(before), _parsed(after)
    done = "Last edit to {} undone" if command == "undo_edit" else "Last undone edit to {} redone"
    view = show_text(new, path) if new is not None else "The file is not there any more.\n"
    said = f"{DRY_RUN * dry_run}{done.format(path)} successfully. {view}"
    texts = (None if file is None else file.text for file in (old, new))
    return EditorResult.of_change(said, path, *texts, dry_run=dry_run)


def decoded(content: bytes | None) -> str:
    """Text of a content; "" for None."""
    file = _parsed(content)
    return file.text if file is not None else ""


def _parsed(content: bytes | None) -> TextFile | None:
    if content is None:
        return None
    file = TextFile.parse(content)
    return file if file is not None else TextFile(content.decode("utf-8", "replace").encode())
