"""Undo, redo, and comparing a file with its past."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor import atomic
from oh_jupyter.editor.differences import unified_diff
from oh_jupyter.editor.foreign import changed_error
from oh_jupyter.editor.history import FileHistory, History, Superseded
from oh_jupyter.editor.messages import DRY_RUN, cannot_read, cannot_write
from oh_jupyter.editor.reading import show_text
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.steps import Step
from oh_jupyter.editor.text import TextFile
from oh_jupyter.editor.timeline import Conflict, Timeline
from oh_jupyter.errors import EditorError, FileChangedError, NoHistoryError

__all__ = ["Contents", "diff", "look", "moved_step", "result_of", "step_of", "walk", "written_now"]


Contents = dict[Path, bytes | None]
"""Files, links followed, and what they are now; None if one is not there."""


def walk(
    store: History, path: Path, command: str, *, dry_run: bool = False
) -> tuple[EditorResult, Contents]:
    """Undo the last edit of a file, or redo the one that was undone last.

    Args:
        store: The histories.
        path: The file, which need not exist any more.
        command: ``undo_edit`` or ``redo_edit``.
        dry_run: Change nothing.

    Returns:
        What was done, and what the files are now.

    Raises:
        NoHistoryError: There is nothing to undo or redo.
        FileChangedError: Somebody else changed the same place since.
        EditorError: The file could not be read or written.
    """
    with store.open(path) as history:
        before, stamp = look(history)
        timeline, content = step_of(history, history.timeline, before, path, command)
        step = moved_step(history.timeline, command)
        if step is None or len(step.files) < 2:
            if not dry_run:
                _move(history, timeline, content, stamp, path)
            result = result_of(path, before, content, command, dry_run)
            return result, {} if dry_run else {history.path: content}
    from oh_jupyter.editor.undo_together import walk_together

    return walk_together(store, path, command, step, dry_run=dry_run)


def _move(
    history: FileHistory,
    timeline: Timeline,
    content: bytes | None,
    stamp: atomic.Stamp | None,
    path: Path,
) -> None:
    try:
        history.move_to(timeline, content, stamp)
    except Superseded:
        raise written_now(path) from None
    except OSError as error:
        raise cannot_write(path, error) from None


def moved_step(timeline: Timeline, command: str) -> Step | None:
    """Find the change that a command takes back or makes again.

    Args:
        timeline: The history of a file.
        command: ``undo_edit`` or ``redo_edit``.

    Returns:
        The change; None if there is none.
    """
    return timeline.last if command == "undo_edit" else timeline.next


def written_now(path: Path) -> FileChangedError:
    """Say that a file was written by somebody else in the very moment.

    Args:
        path: The file.

    Returns:
        The error to raise.
    """
    return FileChangedError(
        f"Somebody else wrote {path} in this moment; nothing was changed. Try again."
    )


def look(history: FileHistory) -> tuple[bytes | None, atomic.Stamp | None]:
    """Read a file, and take in what happened to it since the editor last wrote it.

    Args:
        history: Its history.

    Returns:
        What it is, None if it is not there, and its stamp.

    Raises:
        EditorError: It cannot be read.
    """
    current, stamp = _read(history)
    history.notice(current)
    return current, stamp


def result_of(
    path: Path, before: bytes | None, after: bytes | None, command: str, dry_run: bool
) -> EditorResult:
    """Tell what a step did to a file.

    Args:
        path: The file.
        before: What it was.
        after: What it is.
        command: ``undo_edit`` or ``redo_edit``.
        dry_run: Whether it is as it was.

    Returns:
        The result.
    """
    old, new = _parsed(before), _parsed(after)
    done = "Last edit to {} undone" if command == "undo_edit" else "Last undone edit to {} redone"
    view = show_text(new, path) if new is not None else "The file is not there any more.\n"
    return EditorResult(
        f"{DRY_RUN * dry_run}{done.format(path)} successfully. {view}",
        path=str(path),
        prev_exist=before is not None,
        old_content=old.text if old is not None else None,
        new_content=new.text if new is not None else None,
        dry_run=dry_run,
    )


def diff(store: History, path: Path, steps: int) -> str:
    """Compare a file with what it was some edits ago.

    Args:
        store: The histories.
        path: The file.
        steps: How many edits to look back.

    Returns:
        A unified diff.

    Raises:
        NoHistoryError: There are not as many edits.
        FileChangedError: Somebody else changed the same place since.
    """
    with store.open(path) as history:
        current, _ = look(history)
        timeline, content = history.timeline, current
        for _ in range(steps):
            timeline, content = step_of(history, timeline, content, path, "undo_edit")
    return unified_diff(_text(content) or "", _text(current) or "", str(path), context=3)


def _read(history: FileHistory) -> tuple[bytes | None, atomic.Stamp | None]:
    try:
        return atomic.read(history.path)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise cannot_read(history.path, error) from None


def step_of(
    history: FileHistory, timeline: Timeline, current: bytes | None, path: Path, command: str
) -> tuple[Timeline, bytes | None]:
    """Compute one step of a file.

    Args:
        history: Its history.
        timeline: The timeline to start from.
        current: What the file is there.
        path: Its name for errors.
        command: ``undo_edit`` or ``redo_edit``.

    Returns:
        The timeline after the step, and what the file becomes; None to remove it.

    Raises:
        EditorError: There is no such step, or it cannot be made.
    """
    move = timeline.undo if command == "undo_edit" else timeline.redo
    try:
        return move(current, history.blobs)
    except NoHistoryError:
        what = "edit history" if command == "undo_edit" else "undone edit"
        raise NoHistoryError(f"No {what} found for {path}.") from None
    except Conflict as conflict:
        raise changed_error(path, _text(conflict.before) or "", _text(current) or "") from None
    except (LookupError, ValueError) as error:
        raise EditorError(
            f"The edit history of {path} is damaged ({error}); nothing was changed. "
            "Its steps cannot be undone any more."
        ) from None


def _parsed(content: bytes | None) -> TextFile | None:
    if content is None:
        return None
    file = TextFile.parse(content)
    return file if file is not None else TextFile(content.decode("utf-8", "replace").encode())


def _text(content: bytes | None) -> str | None:
    file = _parsed(content)
    return file.text if file is not None else None
