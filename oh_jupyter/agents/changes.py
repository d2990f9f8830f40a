"""Which files a turn of an agent changed: by edits, by commands, and by the agent's own tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from oh_jupyter.editor import ChangedFile
from oh_jupyter.errors import CheckpointError, EditorError
from oh_jupyter.events import Event, FileEditObservation, FileWriteObservation

if TYPE_CHECKING:
    from oh_jupyter.agents.turn import AgentTurn
    from oh_jupyter.editor import FileEditor
    from oh_jupyter.runtime.executor import ActionExecutor

MAX_COMPARED_FILES = 100
"""Of how many files that commands changed the contents are compared."""

MAX_COMPARED_BYTES = 1_000_000
"""Up to which size, before and after, a file's contents are compared."""


def find_changes(turn: AgentTurn, executor: ActionExecutor, first_id: int) -> None:
    """Note in a turn that ended what changed since an event, with the diff of all of it."""
    edited = _edited_paths(executor.events.search(start=first_id + 1))
    turn.changed_files = _edit_counts(executor.editor, edited, turn.began) if edited else {}
    diffs = list(_edit_diffs(executor.editor, turn.changed_files)) if turn.changed_files else []
    if turn.checkpoint is not None:
        known = {os.path.realpath(path) for path in edited}
        changes = [each for each in _changes(executor, turn) if str(each.path) not in known]
        turn.changed_by_commands = [str(each.path) for each in changes]
        diffs += map(_diff, changes[:MAX_COMPARED_FILES])
        if len(changes) > MAX_COMPARED_FILES:
            diffs.append(f"and {len(changes) - MAX_COMPARED_FILES} more files")
    turn.diff = "\n".join(diff.rstrip("\n") for diff in diffs if diff)


def _edited_paths(events: Iterable[Event]) -> list[str]:
    """The files that the edits among events name, in the order of their first edit."""
    paths: dict[str, None] = {}
    for event in events:
        if isinstance(event, FileWriteObservation):
            paths[event.path] = None
        elif isinstance(event, FileEditObservation) and event.diff:
            named = [
                line[4:].partition("\t")[0]
                for line in event.diff.splitlines()
                if line.startswith(("+++ ", "--- "))
            ]
            paths |= dict.fromkeys(path for path in (event.path, *named) if os.path.isabs(path))
    return [path for path in paths if not os.path.isdir(path)]


def _edit_counts(editor: FileEditor, paths: Iterable[str], since: float) -> dict[str, int]:
    """Paths with the number of edits since a time, in seconds since the epoch, that still hold."""
    counts: dict[str, int] = {}
    for path in paths:
        with suppress(EditorError, OSError):
            entries = editor.history(path)
            count = sum(entry.time >= since and not entry.undone for entry in entries)
            if count:
                counts[path] = count
    return counts


def _edit_diffs(editor: FileEditor, counts: dict[str, int]) -> Iterator[str]:
    """The diff of each edited file; one that others have changed since is left out."""
    for path, count in counts.items():
        with suppress(EditorError, OSError):
            yield editor.diff(path, count)


def _changes(executor: ActionExecutor, turn: AgentTurn) -> list[ChangedFile]:
    """The files that are not what they were at the turn's checkpoint, by path."""
    try:
        originals = executor.turns.checkpoints.originals(turn.began)
    except CheckpointError:  # it was told when the turn began, or is told at the next one
        return []
    found = []
    for path in sorted(originals):
        with suppress(OSError):
            new = path.read_bytes() if path.exists() else None
            if new != originals[path]:
                found.append(ChangedFile.between(path, originals[path], new))
    return found


def _diff(change: ChangedFile) -> str:
    size = len(change.old or b"") + len(change.new or b"")
    if change.is_binary or size > MAX_COMPARED_BYTES:
        return f"{change.kind} {change.path}: {'binary' if change.is_binary else 'too long'}"
    return change.diff()
