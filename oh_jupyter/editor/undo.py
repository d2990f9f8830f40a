"""Undo, redo, and comparing a file with its past."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor import atomic
from oh_jupyter.editor.differences import unified_diff
from oh_jupyter.editor.foreign import changed_error
from oh_jupyter.editor.history import FileHistory, History, Superseded
from oh_jupyter.editor.messages import cannot_read, cannot_write
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.text import TextFile
from oh_jupyter.editor.timeline import Conflict, Timeline
from oh_jupyter.editor.views import number_lines
from oh_jupyter.errors import EditorError, FileChangedError, NoHistoryError

__all__ = ["diff", "walk"]


def walk(store: History, path: Path, command: str) -> tuple[EditorResult, bytes | None]:
    """Undo the last edit of a file, or redo the one that was undone last.

    Args:
        store: The histories.
        path: The file, which need not exist any more.
        command: ``undo_edit`` or ``redo_edit``.

    Returns:
        What was done, and what the file is now; None if it is not there.

    Raises:
        NoHistoryError: There is nothing to undo or redo.
        FileChangedError: Somebody else changed the same place since.
        EditorError: The file could not be read or written.
    """
    with store.open(path) as history:
        current, stamp = _read(history)
        history.notice(current)
        timeline, content = _step(history, history.timeline, current, path, command)
        try:
            history.move_to(timeline, content, stamp)
        except Superseded:
            raise FileChangedError(
                f"Somebody else wrote {path} in this moment; nothing was changed. Try again."
            ) from None
        except OSError as error:
            raise cannot_write(path, error) from None
    old, new = _text(current), _text(content)
    done = "Last edit to {} undone" if command == "undo_edit" else "Last undone edit to {} redone"
    view = number_lines(new, path) if new is not None else "The file is not there any more.\n"
    result = EditorResult(
        f"{done.format(path)} successfully. {view}",
        path=str(path),
        prev_exist=current is not None,
        old_content=old,
        new_content=new,
    )
    return result, content


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
        current, _ = _read(history)
        history.notice(current)
        timeline, content = history.timeline, current
        for _ in range(steps):
            timeline, content = _step(history, timeline, content, path, "undo_edit")
    return unified_diff(_text(content) or "", _text(current) or "", str(path), context=3)


def _read(history: FileHistory) -> tuple[bytes | None, atomic.Stamp | None]:
    try:
        return atomic.read(history.path)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise cannot_read(history.path, error) from None


def _step(
    history: FileHistory, timeline: Timeline, current: bytes | None, path: Path, command: str
) -> tuple[Timeline, bytes | None]:
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


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    file = TextFile.parse(content)
    return file.text if file is not None else content.decode("utf-8", "replace")
