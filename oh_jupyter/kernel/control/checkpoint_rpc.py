"""Operations on the checkpoints of the workspace."""

from __future__ import annotations

import dataclasses
from typing import Any

from oh_jupyter.checkpoints import Checkpoint, RewindPlan
from oh_jupyter.errors import WireError
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.rpc import Reply, Request, operation

__all__: list[str] = []


@operation("checkpoints")
async def _checkpoints(request: Request) -> Reply:
    """List the checkpoints, the oldest first, and why there are no new ones."""
    executor = request.runtime.executor
    entries = await executor.in_thread(executor.turns.checkpoints.entries)
    found = {
        "checkpoints": [_summary(entry) for entry in entries],
        "problem": executor.turns.problem,
    }
    return Reply(body=encode_json(found))


@operation("mark_checkpoint")
async def _mark(request: Request) -> Reply:
    turns = request.runtime.executor.turns
    return Reply(body=encode_json(_summary(await turns.mark(request.text("label")))))


@operation("rewind")
async def _rewind(request: Request) -> Reply:
    """Undo the turns since a checkpoint, or tell what that would do."""
    executor, fields = request.runtime.executor, request.fields
    id, everything = fields.get("id"), fields.get("everything", False)
    source = fields.get("source", "agent")
    if id is not None and (not isinstance(id, int) or isinstance(id, bool)):
        raise WireError("'id' must be the number of a checkpoint, or null for the last turn", "id")
    for name in ("everything", "preview"):
        if not isinstance(fields.get(name, False), bool):
            raise WireError(f"{name!r} must be true or false", name)
    if source not in ("agent", "user"):
        raise WireError("'source' must be 'agent' or 'user'", "source")
    if not fields.get("preview", False):
        plan = await executor.rewind(id, source, everything=everything)
        return Reply(body=encode_json(_changes(plan)))
    if id is None:
        id = (await executor.in_thread(executor.turns.checkpoints.last_turn)).id
    plan = await executor.turns.rewind(id, everything=everything, preview=True)
    return Reply(body=encode_json(_changes(plan)))


def _summary(entry: Checkpoint) -> dict[str, Any]:
    names = ("id", "time", "kind", "label", "who")
    return {**{name: getattr(entry, name) for name in names}, "ended": entry.end is not None}


def _changes(plan: RewindPlan) -> dict[str, Any]:
    return {
        **dataclasses.asdict(plan),
        "changes": [{"path": change.path, "kind": change.kind} for change in plan.changes],
    }
