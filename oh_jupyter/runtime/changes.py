"""Which files are not what they were when the session began, edited or changed by commands."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from oh_jupyter.editor import ChangedFile, FileEditor, HistoryPosition
from oh_jupyter.runtime.executor import ActionExecutor

__all__ = ["joined_changes", "session_changes"]


async def session_changes(
    executor: ActionExecutor, *, by_commands: bool = True
) -> list[ChangedFile]:
    """The files that edits, and turns of agents by whatever means, changed in this session.

    A CheckpointError if ``by_commands`` is wanted, and what commands changed cannot be told.
    """
    editor = executor.editor  # its first edit comes after it was made
    start = HistoryPosition(executor.start_time, executor.heads_at_start)
    originals: Mapping[Path, bytes | None] = {}
    if by_commands and not executor.turns.problem:
        originals = await executor.in_thread(executor.turns.checkpoints.originals, start.time)
    return await executor.in_thread(joined_changes, editor, start, originals)


def joined_changes(
    editor: FileEditor, start: HistoryPosition, originals: Mapping[Path, bytes | None]
) -> list[ChangedFile]:
    """What edits changed since a position, and what checkpoints know besides, by path.

    Of a file that had no edit before the position, a checkpoint knows better what it was: a
    command may have changed it before its first edit.
    """
    found = {change.path: change for change in editor.changes(start)}
    moved = {change.moved_from for change in found.values()}
    for path, old in originals.items():
        edited = found.get(path)
        if path in moved or (edited and (edited.moved_from or str(path) in start.heads)):
            continue
        new = edited.new if edited else _contents(path)
        if old == new:
            found.pop(path, None)
        elif edited:
            found[path] = replace(edited, kind=_kind(old, new), old=old, forgotten=False)
        else:
            found[path] = ChangedFile(path, _kind(old, new), old, new)
    return [found[path] for path in sorted(found)]


def _contents(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None


def _kind(old: bytes | None, new: bytes | None) -> Literal["created", "changed", "deleted"]:
    return "created" if old is None else "deleted" if new is None else "changed"
