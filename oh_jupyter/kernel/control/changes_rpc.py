"""Operations on what changed in this session, and on the checkpoints to go back to.

An undo or redo is the person's Action: it is not offered over REST, where whoever has the server's
token may be an agent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from oh_jupyter.checkpoints import Checkpoint, RewindPlan
from oh_jupyter.editor import ChangedFile, FileEditor, HistoryPosition
from oh_jupyter.errors import CheckpointError, WireError
from oh_jupyter.events import FileEditAction
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.rpc import Reply, Request, operation
from oh_jupyter.moves import Move, moved_to, moves
from oh_jupyter.runtime.executor import ActionExecutor

MAX_TEXT_CHARS = 1_000_000
"""Longest text that is sent to be compared."""


@operation("changes")
async def _changes(request: Request) -> Reply:
    """The changed files without their contents."""
    executor = request.runtime.executor
    problem = executor.turns.problem
    rewound: dict[Path, int] = {}
    try:
        found = await session_changes(executor)
        rewound = await _rewound(executor)
    except CheckpointError as raised:
        problem = str(raised)
        found = await session_changes(executor, by_commands=False)
    files = await executor.in_thread(
        lambda: [_summary(each, executor.editor, each.path in rewound) for each in found]
    )
    fields = {"workspace": executor.workspace_dir, "problem": problem, "files": files}
    return Reply(body=encode_json(fields))


@operation("change")
async def _change(request: Request) -> Reply:
    """What became of one file: its texts, or for a notebook its cells."""
    path = request.text("path")
    for each in await session_changes(request.runtime.executor):
        if str(each.path) == path:
            return Reply(body=encode_json(_contents(each)))
    raise WireError(f"{path} is as it was when the session began", "path")


@operation("undo_change")
async def _undo_change(request: Request) -> Reply:
    """Undo the last edit of a file, or with ``redo`` make again what was undone last.

    Where no edit is left, what commands made of the file since the session began is undone. What
    others changed meanwhile stays: the answer tells why, unless ``everything`` is undone.
    """
    executor, path = request.runtime.executor, request.text("path")
    redo = request.fields.get("redo") is True
    checkpoint = None
    if redo:
        with suppress(CheckpointError):  # an edit is made again without them
            checkpoint = (await _rewound(executor)).get(Path(path))
    else:
        checkpoint = await _first_change(executor, path)
    if checkpoint is None:
        action = FileEditAction(path=path, command="redo_edit" if redo else "undo_edit")
        observation = await executor.run_action(action, "user")
        return Reply(body=request.runtime.events.encoded(observation))
    everything = request.fields.get("everything") is True
    plan = await executor.rewind(checkpoint, "user", everything=everything, path=path)
    return Reply(body=encode_json({"kept": "".join(plan.kept.values())}))


async def _first_change(executor: ActionExecutor, path: str) -> int | None:
    """The turn that began to change a file by commands; None where an edit is undone."""
    edited = await session_changes(executor, by_commands=False)
    if any(str(each.path) == path and _has_edits(each, executor.editor) for each in edited):
        return None
    if not any(str(each.path) == path for each in await session_changes(executor)):
        return None
    find = executor.turns.checkpoints.first_change
    return cast("int | None", await executor.in_thread(find, path, executor.start_time))


async def _rewound(executor: ActionExecutor) -> dict[Path, int]:
    """The files that were brought back in this session, with the rewinds to be undone."""
    find = executor.turns.checkpoints.rewound
    return cast("dict[Path, int]", await executor.in_thread(find, executor.start_time))


def _has_edits(change: ChangedFile, editor: FileEditor) -> bool:
    steps = editor.history(change.path)
    return bool(change.commands) and any(not step.undone for step in steps)


def _summary(change: ChangedFile, editor: FileEditor, is_rewound: bool) -> dict[str, Any]:
    added, removed = (0, 0) if change.is_binary else change.counts
    redoable = is_rewound or any(step.undone for step in editor.history(change.path))
    # What commands did to a moved file, they did under its old name.
    is_commands = not change.commands and change.moved_from is None
    return {
        "path": str(change.path),
        "kind": change.kind,
        "moved_from": None if change.moved_from is None else str(change.moved_from),
        "added": added,
        "removed": removed,
        "binary_size": len(change.new or change.old or b"") if change.is_binary else None,
        "by_others": change.by_others,
        "undoable": is_commands or _has_edits(change, editor),
        "redoable": redoable,
    }


def _contents(change: ChangedFile) -> dict[str, Any]:
    too_long = max(len(change.old_text), len(change.new_text)) > MAX_TEXT_CHARS
    if change.cells:
        cells = [cell._asdict() for cell in change.cells]
        return {"cells": cells, "language": _language(change.new_text or change.old_text)}
    if change.is_binary or too_long or change.forgotten:
        reason = "binary" if change.is_binary else "too_long" if too_long else "forgotten"
        return {"reason": reason}
    return {"old": change.old_text, "new": change.new_text}


def _language(notebook: str) -> str:
    """The language of a notebook's cells, "" if it does not say."""
    spec = json.loads(notebook).get("metadata", {}).get("kernelspec", {})
    return str(spec.get("language", ""))


@operation("checkpoints")
async def _checkpoints(request: Request) -> Reply:
    """List the checkpoints, the oldest first, and why there are no new ones."""
    executor = request.runtime.executor
    entries = await executor.turns.entries()
    found = {
        "checkpoints": [_checkpoint_fields(entry) for entry in entries],
        "problem": executor.turns.problem,
    }
    return Reply(body=encode_json(found))


@operation("mark_checkpoint")
async def _mark(request: Request) -> Reply:
    turns = request.runtime.executor.turns
    return Reply(body=encode_json(_checkpoint_fields(await turns.mark(request.text("label")))))


@operation("rewind")
async def _rewind(request: Request) -> Reply:
    """Undo the turns since a checkpoint, or tell what that would do."""
    executor, fields = request.runtime.executor, request.fields
    id, source, path = fields.get("id"), fields.get("source", "agent"), fields.get("path")
    if id is not None and (not isinstance(id, int) or isinstance(id, bool)):
        raise WireError("'id' must be the number of a checkpoint, or null for the last turn", "id")
    everything, is_preview = request.flag("everything"), request.flag("preview")
    if path is not None and not isinstance(path, str):
        raise WireError("'path' must name a file, or be null for all", "path")
    if source not in ("agent", "user"):
        raise WireError("'source' must be 'agent' or 'user'", "source")
    if not is_preview:
        plan = await executor.rewind(id, source, everything=everything, path=path)
        return Reply(body=encode_json(_plan_fields(plan)))
    if id is None:
        id = (await executor.in_thread(executor.turns.checkpoints.last_turn)).id
    plan = await executor.turns.rewind(id, everything=everything, preview=True, path=path)
    return Reply(body=encode_json(_plan_fields(plan)))


def _checkpoint_fields(entry: Checkpoint) -> dict[str, Any]:
    names = ("id", "time", "kind", "label", "who")
    return {
        **{name: getattr(entry, name) for name in names},
        "ended": not entry.is_open and entry.end is not None,
    }


def _plan_fields(plan: RewindPlan) -> dict[str, Any]:
    return {
        **asdict(plan),
        "changes": [{"path": change.path, "kind": change.kind} for change in plan.changes],
    }


async def session_changes(
    executor: ActionExecutor, *, by_commands: bool = True
) -> list[ChangedFile]:
    """The files that changed in this session; a CheckpointError if it cannot be told."""
    editor = executor.editor  # its first edit comes after it was made
    start = HistoryPosition(executor.start_time, executor.heads_at_start)
    originals: Mapping[Path, bytes | None] = {}
    if by_commands and not executor.turns.problem:
        originals = await executor.in_thread(executor.turns.checkpoints.originals, start.time)
    made = moves(start.time)
    return await executor.in_thread(joined_changes, editor, start, originals, made)


def joined_changes(
    editor: FileEditor,
    start: HistoryPosition,
    originals: Mapping[Path, bytes | None],
    made: Sequence[Move] = (),
) -> list[ChangedFile]:
    """What edits changed since a position, and what checkpoints know besides, by path.

    Of a file that had no edit before the position, a checkpoint knows better what it was: a
    command may have changed it before its first edit. A file that a person has moved in Jupyter
    since is one change, at its new name.
    """
    found = {change.path: change for change in editor.changes(start)}
    moved = {change.moved_from for change in found.values()}
    for path, old in originals.items():
        edited = found.get(path)
        if path in moved or (edited and (edited.moved_from or str(path) in start.heads)):
            continue
        new = edited.new if edited else _read(path)
        if old == new:
            found.pop(path, None)
            continue
        change = ChangedFile.between(path, old, new)
        if edited:
            change = replace(edited, kind=change.kind, old=old, forgotten=False)
        found[path] = change
    if made:
        _join_persons_moves(found, originals, made)
    return [found[path] for path in sorted(found)]


def _join_persons_moves(
    found: dict[Path, ChangedFile], originals: Mapping[Path, bytes | None], made: Sequence[Move]
) -> None:
    """Make one change of a file that changed under its old name and is at another one now."""
    gone = {path: change.old for path, change in found.items() if change.new is None}
    # What an agent made and a person moved then was not there before, and is not there now.
    gone |= {path: old for path, old in originals.items() if old is None and _read(path) is None}
    for path, old in gone.items():
        target = Path(moved_to(str(path), made))
        new = _read(target)
        if target == path or new is None:
            continue
        here, there = found.pop(path, None), found.pop(target, None)
        found[target] = ChangedFile(
            target,
            "created" if old is None else "moved",
            old,
            new,
            moved_from=path,
            commands=there.commands if there else (),
            by_others=True,
            forgotten=here is not None and here.forgotten,
        )


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None
