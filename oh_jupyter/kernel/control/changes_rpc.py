"""Operations on the changes of this session, and on checkpoints.

Undo and redo are the person's Actions, so REST does not offer them: the holder of the server's
token may be an agent.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints import Checkpoint, RewindPlan
from oh_jupyter.control_messages import Reply
from oh_jupyter.editor import ChangedFile
from oh_jupyter.errors import CheckpointError, WireError
from oh_jupyter.events import EventSource, Observation
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.agent_requests import check_approved, is_judged
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.runtime import ActionExecutor
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.rewind import Scope
from oh_jupyter.runtime.session_changes import has_edits, rewound_files, session_changes
from oh_jupyter.runtime.undo import rewind, rewind_changes, undo_change

MAX_TEXT_CHARS = 1_000_000
"""Maximum length of a text that is sent for comparison."""


@operation("changes")
async def _changes(request: Request) -> Reply:
    """Return the changed files without their contents."""
    executor = request.runtime.executor
    problem = executor.turns.problem
    rewound: dict[Path, int] = {}
    try:
        changes = await session_changes(executor)
        rewound = await rewound_files(executor)
    except CheckpointError as error:
        problem = str(error)
        changes = await session_changes(executor, by_commands=False)
    files = await executor.in_thread(
        lambda: [_summary(each, executor, each.path in rewound) for each in changes]
    )
    fields = {"workspace": executor.workspace_dir, "problem": problem, "files": files}
    return Reply(body=encode_json(fields))


@operation("change")
async def _change(request: Request) -> Reply:
    """Return both texts of a changed file, or the cells of a notebook."""
    path = request.text("path")
    for each in await session_changes(request.runtime.executor):
        if str(each.path) == path:
            return Reply(body=encode_json(_contents(each)))
    raise WireError(f"{path} has not changed in this session", "path")


@operation("runs_when")
async def _runs_when(request: Request) -> Reply:
    """Return what a person does that runs a changed file, from its content before, or null."""
    executor = request.runtime.executor
    path = Path(os.path.realpath(os.path.expanduser(request.text("path"))))
    before = request.text("before").encode()

    def act() -> str | None:
        current = path.read_bytes() if path.is_file() else None
        change = ChangedFile.between(path, before, current)
        return change.runs_when(executor.workspace_dir)

    return Reply(body=encode_json({"runs_when": await executor.in_thread(act)}))


@operation("undo_change")
async def _undo_change(request: Request) -> Reply:
    """Undo or ``redo`` the last edit of a file, or else what commands changed in this session.

    Changes that others made meanwhile stay and the reply gives the reason, unless ``everything``
    is undone.
    """
    result = await undo_change(
        request.runtime.executor,
        request.text("path"),
        redo=request.fields.get("redo") is True,
        everything=request.fields.get("everything") is True,
    )
    if isinstance(result, Observation):
        return Reply(body=request.runtime.events.encoded(result))
    return Reply(body=encode_json({"kept": "".join(result.kept.values())}))


def _summary(change: ChangedFile, executor: ActionExecutor, is_rewound: bool) -> dict[str, Any]:
    editor = executor.editor
    added, removed = (0, 0) if change.is_binary else change.counts
    redoable = is_rewound or any(step.undone for step in editor.history(change.path))
    # Commands changed a moved file under its old name.
    is_commands = not change.commands and change.moved_from is None
    return {
        "path": str(change.path),
        "kind": change.kind,
        "moved_from": None if change.moved_from is None else str(change.moved_from),
        "added": added,
        "removed": removed,
        "binary_size": len(change.new or change.old or b"") if change.is_binary else None,
        "runs_when": change.runs_when(executor.workspace_dir),
        "by_others": change.by_others,
        "undoable": is_commands or has_edits(change, editor),
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
    """Return the language of a notebook's cells, or "" if unknown."""
    spec = json.loads(notebook).get("metadata", {}).get("kernelspec", {})
    return str(spec.get("language", ""))


@operation("decisions")
async def _decisions(request: Request) -> Reply:
    """List what the person undid and kept of the agents' changes in tabs, oldest first."""
    notes = request.runtime.executor.undo_notes.all
    return Reply(body=encode_json({"decisions": [asdict(note) for note in notes]}))


@operation("checkpoints")
async def _checkpoints(request: Request) -> Reply:
    """List the checkpoints, oldest first, and the reason if there are no new ones."""
    executor = request.runtime.executor
    entries = await executor.turns.entries()
    fields = {
        "checkpoints": [_checkpoint_fields(entry) for entry in entries],
        "problem": executor.turns.problem,
    }
    return Reply(body=encode_json(fields))


@operation("mark_checkpoint")
async def _mark(request: Request) -> Reply:
    turns = request.runtime.executor.turns
    return Reply(body=encode_json(_checkpoint_fields(await turns.mark(request.text("label")))))


@operation("rewind")
async def _rewind(request: Request) -> Reply:
    """Undo the turns since a checkpoint, or report what that would change."""
    executor, source = request.runtime.executor, request.fields.get("source", "agent")
    id, path = _checkpoint_id(request), _one_path(request)
    everything, preview = request.flag("everything"), request.flag("preview")
    parts = {name: request.flag(name, default=path is None) for name in ("files", "variables")}
    if source not in ("agent", "user"):
        raise WireError("'source' must be 'agent' or 'user'", "source")
    principal: EventSource = "user" if source == "user" and not request.is_agents else "agent"
    checkpoint = await executor.turns.checkpoint_id(id)
    scope = Scope(
        path,
        files=parts["files"] or path is not None,
        variables=parts["variables"],
        everything=everything,
        as_person=principal == "user",
    )
    if not preview:
        await _check_rewind(request, checkpoint, scope)
    plan = await rewind(executor, checkpoint, principal, scope, preview=preview)
    return Reply(body=encode_json(_plan_fields(plan)))


async def _check_rewind(request: Request, checkpoint: int, scope: Scope) -> None:
    """Ask a person before an agent's rewind writes files that its edits could not."""
    executor = request.runtime.executor
    if not is_judged(request):
        return
    plan = await rewind(executor, checkpoint, "agent", scope, preview=True)
    paths = [os.path.join(executor.workspace_dir, change.path) for change in plan.changes]
    reasons = [Reason("overwrites_others")] if scope.everything else []
    arguments = {"checkpoint": checkpoint}
    await check_approved(request, "rewind", arguments, writes=paths, reasons=reasons)


@operation("rewind_change")
async def _rewind_change(request: Request) -> Reply:
    """Return both texts of a file that a rewind would change, or the cells of a notebook."""
    executor, path = request.runtime.executor, request.text("path")
    id = await executor.turns.checkpoint_id(_checkpoint_id(request))
    everything = request.flag("everything")
    for each in await rewind_changes(executor, id, everything=everything, path=path):
        return Reply(body=encode_json(_contents(each)))
    raise WireError(f"This rewind does not change the contents of {path}", "path")


def _checkpoint_id(request: Request) -> int | None:
    id = request.fields.get("id")
    if id is not None and (not isinstance(id, int) or isinstance(id, bool)):
        raise WireError("'id' must be the number of a checkpoint, or null for the last turn", "id")
    return id


def _one_path(request: Request) -> str | None:
    path = request.fields.get("path")
    if path is not None and not isinstance(path, str):
        raise WireError("'path' must name a file, or be null for all", "path")
    return path


@operation("own_turns")
async def _own_turns(request: Request) -> Reply:
    """List the turns of the requesting agent that are not undone, oldest first."""
    turns = await request.runtime.executor.turns.own(request.actor)
    return Reply(body=encode_json([_checkpoint_fields(turn) for turn in turns]))


@operation("own_checkpoint")
async def _own_checkpoint(request: Request) -> Reply:
    """Start a new turn of the requesting agent, to whose beginning it can return."""
    turns, label = request.runtime.executor.turns, request.text("label")
    return Reply({"id": await turns.split(label, request.actor)})


@operation("own_rewind")
async def _own_rewind(request: Request) -> Reply:
    """Undo the requesting agent's turns since the one of ``id``, or redo what its rewind undid.

    Turns of others in other kernels stay.
    """
    executor, id = request.runtime.executor, request.fields.get("id")
    is_running = executor.turns.is_announced
    is_own = executor.turns.is_of(request.actor)
    if is_running and not is_own and not request.flag("preview"):
        raise CheckpointError(
            "An agent of %oh_agent is working, and its work would be undone, too. Wait for it, or "
            "undo single edits with edit and undo_edit"
        )
    entries = await executor.turns.own(request.actor)
    own = [entry.id for entry in entries]
    turns = [entry.id for entry in entries if entry.kind == "turn"]
    if not turns if id is None else id not in own:
        raise CheckpointError(
            f"Turn {id} is not one of yours. Yours: {', '.join(map(str, own)) or 'none'}"
        )
    first = turns[-1] if id is None else id
    if foreign := await executor.turns.foreign_since(first, own):
        raise CheckpointError(
            f"Others worked since turn {first} (turns {', '.join(map(str, foreign))}), and their "
            "work would be undone, too. Ask the person to rewind"
        )
    preview = request.flag("preview")
    # The prompt of such an agent is a cell that waits for it.
    scope = Scope(
        as_person=False,
        in_cell=is_running and is_own,
        by_owner=is_own,
        owner=request.actor.owner,
    )
    if not preview:
        await _check_rewind(request, first, scope)
    plan = await rewind(executor, first, "agent", scope, preview=preview)
    return Reply({"id": first, "text": str(plan)})


def _checkpoint_fields(entry: Checkpoint) -> dict[str, Any]:
    names = ("id", "time", "kind", "label", "who")
    return {
        **{name: getattr(entry, name) for name in names},
        "ended": not entry.is_open and entry.kind != "mark",
        "files": entry.extra.get("files", []),
        "cells": entry.extra.get("cells", 0),
        "variables": entry.extra.get("changed_variables", []),
    }


def _plan_fields(plan: RewindPlan) -> dict[str, Any]:
    return {
        **asdict(plan),
        "changes": [{"path": change.path, "kind": change.kind} for change in plan.changes],
    }
