"""Undo, redo, and comparing a file with its past."""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.history.edit_history import ConcurrentWriteError, EditHistory, FileHistory
from oh_jupyter.editor.history.timeline import Timeline
from oh_jupyter.editor.messages import cannot_write
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.text.unified_diff import unified_diff
from oh_jupyter.editor.undo_steps import (
    Contents,
    compute_step,
    just_written,
    read_current,
    result_of,
    target_step,
    text_of,
)
from oh_jupyter.editor.undo_together import _walk_together

__all__ = ["diff", "walk"]


def walk(
    store: EditHistory, path: Path, command: str, *, dry_run: bool = False
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
        before, fingerprint = read_current(history)
        timeline, content = compute_step(history, history.timeline, before, path, command)
        step = target_step(history.timeline, command)
        if step is None or len(step.files) < 2:
            if not dry_run:
                _move(history, timeline, content, fingerprint, path)
            result = result_of(path, before, content, command, dry_run)
            return result, {} if dry_run else {history.path: content}
    return _walk_together(store, path, command, step, dry_run=dry_run)


def _move(
    history: FileHistory,
    timeline: Timeline,
    content: bytes | None,
    fingerprint: atomic_write.Fingerprint | None,
    path: Path,
) -> None:
    try:
        history.move_to(timeline, content, fingerprint)
    except ConcurrentWriteError:
        raise just_written(path) from None
    except OSError as error:
        raise cannot_write(path, error) from None


def diff(store: EditHistory, path: Path, steps: int) -> str:
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
        current, _ = read_current(history)
        timeline, content = history.timeline, current
        for _ in range(steps):
            timeline, content = compute_step(history, timeline, content, path, "undo_edit")
    return unified_diff(text_of(content), text_of(current), str(path), context=3)
