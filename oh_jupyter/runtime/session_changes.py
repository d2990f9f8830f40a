"""Files that changed during a session or a turn: by edits, commands, and agents' own tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from oh_jupyter.descriptors import content_at
from oh_jupyter.editor import ChangedFile, HistoryPosition
from oh_jupyter.errors import CheckpointError, EditorError
from oh_jupyter.events import Event, Observation
from oh_jupyter.runs_when import runs_when
from oh_jupyter.writes import PersonsWrite, moved_to, moves

if TYPE_CHECKING:
    from oh_jupyter.editor import FileEditor
    from oh_jupyter.runtime.executor import ActionExecutor

MAX_COMPARED_FILES = 100
"""Maximum number of files changed by commands whose diffs are part of a turn's diff."""

MAX_COMPARED_BYTES = 1_000_000
"""Maximum size of both versions of such a file."""


async def session_changes(
    executor: ActionExecutor, *, by_commands: bool = True
) -> list[ChangedFile]:
    """Return the files changed in this session; raise CheckpointError if they are unknown."""
    editor = executor.editor  # created before its first edit
    start = HistoryPosition(executor.start_time, executor.heads_at_start)
    originals: Mapping[Path, bytes | None] = {}
    if by_commands and not executor.turns.problem:
        originals = await executor.in_thread(executor.turns.checkpoints.originals, start.time)
    persons_moves = await executor.in_thread(moves, start.time)
    return await executor.in_thread(join_changes, editor, start, originals, persons_moves)


async def rewound_files(executor: ActionExecutor) -> dict[Path, int]:
    """Return the files restored in this session, with the ids of the rewinds to undo."""
    find = executor.turns.checkpoints.rewound
    return cast("dict[Path, int]", await executor.in_thread(find, executor.start_time))


def has_edits(change: ChangedFile, editor: FileEditor) -> bool:
    """Return whether a changed file has an edit that can be undone."""
    return bool(change.commands) and any(not step.undone for step in editor.history(change.path))


def join_changes(
    editor: FileEditor,
    start: HistoryPosition,
    originals: Mapping[Path, bytes | None],
    persons_moves: Sequence[PersonsWrite] = (),
) -> list[ChangedFile]:
    """Join the edits since a position with the changes that checkpoints show, by path.

    If a file had no edit before the position, its original comes from the checkpoint, because a
    command may have changed it before its first edit. A file that a person moved in Jupyter is
    one change, under its new name.
    """
    changes = {change.path: change for change in editor.changes(start)}
    moved = {change.moved_from for change in changes.values()}
    for path, old in originals.items():
        edited = changes.get(path)
        if path in moved or (edited and (edited.moved_from or str(path) in start.heads)):
            continue
        new = edited.new if edited else _read(path)
        if old == new:
            changes.pop(path, None)
            continue
        change = ChangedFile.between(path, old, new)
        if edited:
            change = replace(edited, kind=change.kind, old=old, forgotten=False)
        changes[path] = change
    if persons_moves:
        _join_persons_moves(changes, originals, persons_moves)
    return [changes[path] for path in sorted(changes)]


def _join_persons_moves(
    changes: dict[Path, ChangedFile],
    originals: Mapping[Path, bytes | None],
    persons_moves: Sequence[PersonsWrite],
) -> None:
    """Join the changes of a file's old and new name into one."""
    gone = {path: change.old for path, change in changes.items() if change.new is None}
    # A file that an agent created and a person then moved is missing under this name both times.
    gone |= {path: old for path, old in originals.items() if old is None and _read(path) is None}
    for path, old in gone.items():
        target = Path(moved_to(str(path), persons_moves))
        new = _read(Path(os.path.realpath(target.parent), target.name))
        if target == path or new is None:
            continue
        before, after = changes.pop(path, None), changes.pop(target, None)
        changes[target] = ChangedFile(
            target,
            "created" if old is None else "moved",
            old,
            new,
            moved_from=path,
            commands=after.commands if after else (),
            by_others=True,
            forgotten=before is not None and before.forgotten,
        )


class TurnChanges(NamedTuple):
    """Edited files with their number of edits, other changed files, and the diff of both.

    ``runs_when`` has what a person does that runs a file, for those that run.
    """

    edits: dict[str, int]
    by_commands: list[str]
    diff: str
    runs_when: dict[str, str]


def turn_changes(
    executor: ActionExecutor, since: float, last_id: int, *, has_checkpoint: bool
) -> TurnChanges:
    """Return the changes since a time in seconds since the epoch, after the event ``last_id``."""
    edited = _edited_paths(executor.events.search(start=last_id + 1))
    edits = _edit_counts(executor.editor, edited, since) if edited else {}
    diffs = list(_edit_diffs(executor.editor, edits)) if edits else []
    changes = {str(each.path): each for each in _changes(executor, since)} if has_checkpoint else {}
    known = {os.path.realpath(path) for path in edited}
    others = [each for path, each in changes.items() if path not in known]
    diffs.append(joined_diff(others))
    diff = "\n".join(diff.rstrip("\n") for diff in diffs if diff)
    by_commands = [str(each.path) for each in others]
    acts = _acts([*edits, *by_commands], changes, os.path.realpath(executor.workspace_dir))
    return TurnChanges(edits, by_commands, diff, acts)


def _acts(
    paths: Iterable[str], changes: Mapping[str, ChangedFile], workspace: str
) -> dict[str, str]:
    """Return what a person does that runs each file; without its contents, the name decides."""
    acts = {}
    for path in paths:
        change = changes.get(os.path.realpath(path))
        when = change.runs_when(workspace) if change else runs_when(path, workspace)
        if when is not None:
            acts[path] = when
    return acts


def joined_diff(changes: Sequence[ChangedFile]) -> str:
    """Return the diffs of up to 100 changed files as one text."""
    diffs = [_diff(each) for each in changes[:MAX_COMPARED_FILES]]
    if len(changes) > MAX_COMPARED_FILES:
        diffs.append(f"and {len(changes) - MAX_COMPARED_FILES} more files")
    return "\n".join(diff.rstrip("\n") for diff in diffs if diff)


def _edited_paths(events: Iterable[Event]) -> list[str]:
    """Return the files that edits name, in the order of their first edit."""
    paths = [path for each in events if isinstance(each, Observation) for path in each.edited_paths]
    return [path for path in dict.fromkeys(paths) if not os.path.isdir(path)]


def _edit_counts(editor: FileEditor, paths: Iterable[str], since: float) -> dict[str, int]:
    """Count each file's edits since a time that were not undone."""
    counts: dict[str, int] = {}
    for path in paths:
        with suppress(EditorError, OSError):
            entries = editor.history(path)
            if count := sum(entry.time >= since and not entry.undone for entry in entries):
                counts[path] = count
    return counts


def _edit_diffs(editor: FileEditor, counts: dict[str, int]) -> Iterator[str]:
    """Yield the diff of each edited file, except files that others have changed since."""
    for path, count in counts.items():
        with suppress(EditorError, OSError):
            yield editor.diff(path, count)


def _changes(executor: ActionExecutor, since: float) -> Iterator[ChangedFile]:
    """Yield the files that differ from the checkpoint at a time, by path."""
    try:
        originals = executor.turns.checkpoints.originals(since)
    except CheckpointError:  # reported when the turn began, or when the next one begins
        return
    for path in sorted(originals):
        with suppress(OSError):
            new = content_at(path)
            if new != originals[path]:
                yield ChangedFile.between(path, originals[path], new)


def _diff(change: ChangedFile) -> str:
    size = len(change.old or b"") + len(change.new or b"")
    if change.is_binary or size > MAX_COMPARED_BYTES:
        return f"{change.kind} {change.path}: {'binary' if change.is_binary else 'too long'}"
    return change.diff()


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return content_at(path)
    return None
