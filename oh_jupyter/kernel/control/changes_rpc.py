"""Operations on the changes of this session, and on checkpoints.

Undo and redo are the person's Actions, so REST does not offer them: the holder of the server's
token may be an agent.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from oh_jupyter.checkpoints import Checkpoint
from oh_jupyter.editor import ChangedFile
from oh_jupyter.errors import CheckpointError, WireError
from oh_jupyter.events import EventSource, Observation
from oh_jupyter.kernel.control.agent_requests import check_approved, is_judged
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import changes as operations
from oh_jupyter.runtime import ActionExecutor
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.rewind import Scope
from oh_jupyter.runtime.session_changes import has_edits, rewound_files, session_changes
from oh_jupyter.runtime.undo import rewind, rewind_changes, undo_change

MAX_TEXT_CHARS = 1_000_000
"""Maximum length of a text that is sent for comparison."""


@handles(operations.Changes)
async def _changes(request: Request, op: operations.Changes) -> operations.FileChanges:
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
    return operations.FileChanges(executor.workspace_dir, problem, files)


@handles(operations.Change)
async def _change(request: Request, op: operations.Change) -> operations.FileContents:
    for each in await session_changes(request.runtime.executor):
        if str(each.path) == op.path:
            return _contents(each)
    raise WireError(f"{op.path} has not changed in this session", "path")


@handles(operations.RunsWhen)
async def _runs_when(request: Request, op: operations.RunsWhen) -> str | None:
    executor = request.runtime.executor
    path = Path(os.path.realpath(os.path.expanduser(op.path)))
    before = op.before.encode()

    def act() -> str | None:
        current = path.read_bytes() if path.is_file() else None
        change = ChangedFile.between(path, before, current)
        return change.runs_when(executor.workspace_dir)

    runs_when: str | None = await executor.in_thread(act)
    return runs_when


@handles(operations.UndoChange)
async def _undo_change(request: Request, op: operations.UndoChange) -> operations.UndoneChange:
    executor = request.runtime.executor
    result = await undo_change(executor, op.path, redo=op.redo, everything=op.everything)
    if isinstance(result, Observation):
        return operations.UndoneChange(failure=result.failure)
    return operations.UndoneChange(kept="".join(result.kept.values()))


def _summary(
    change: ChangedFile, executor: ActionExecutor, is_rewound: bool
) -> operations.FileChange:
    editor = executor.editor
    added, removed = (0, 0) if change.is_binary else change.counts
    # Commands changed a moved file under its old name.
    is_commands = not change.commands and change.moved_from is None
    return operations.FileChange(
        path=str(change.path),
        kind=change.kind,
        moved_from=None if change.moved_from is None else str(change.moved_from),
        added=added,
        removed=removed,
        binary_size=len(change.new or change.old or b"") if change.is_binary else None,
        runs_when=change.runs_when(executor.workspace_dir),
        by_others=change.by_others,
        undoable=is_commands or has_edits(change, editor),
        redoable=is_rewound or any(step.undone for step in editor.history(change.path)),
    )


def _contents(change: ChangedFile) -> operations.FileContents:
    if change.cells:
        return operations.FileContents(
            cells=[operations.CellChange(**cell._asdict()) for cell in change.cells],
            language=_language(change.new_text or change.old_text),
        )
    if change.is_binary:
        return operations.FileContents(reason="binary")
    if max(len(change.old_text), len(change.new_text)) > MAX_TEXT_CHARS:
        return operations.FileContents(reason="too_long")
    if change.forgotten:
        return operations.FileContents(reason="forgotten")
    return operations.FileContents(change.old_text, change.new_text)


def _language(notebook: str) -> str:
    """Return the language of a notebook's cells, or "" if unknown."""
    spec = json.loads(notebook).get("metadata", {}).get("kernelspec", {})
    return str(spec.get("language", ""))


@handles(operations.Decisions)
async def _decisions(request: Request, op: operations.Decisions) -> operations.DecisionList:
    notes = request.runtime.executor.undo_notes.all
    return operations.DecisionList([operations.Decision(note.text, note.diff) for note in notes])


@handles(operations.RecordKeep)
async def _record_keep(request: Request, op: operations.RecordKeep) -> None:
    request.runtime.executor.undo_notes.add_keep(op.name, op.count)


@handles(operations.Checkpoints)
async def _checkpoints(request: Request, op: operations.Checkpoints) -> operations.CheckpointList:
    executor = request.runtime.executor
    entries = await executor.turns.entries()
    return operations.CheckpointList(list(map(_checkpoint, entries)), executor.turns.problem)


@handles(operations.MarkCheckpoint)
async def _mark(request: Request, op: operations.MarkCheckpoint) -> operations.Checkpoint:
    turns = request.runtime.executor.turns
    return _checkpoint(await turns.mark(op.label))


@handles(operations.Rewind)
async def _rewind(request: Request, op: operations.Rewind) -> operations.RewindPlan:
    executor = request.runtime.executor
    is_persons = op.source == "user" and not request.is_agents
    principal: EventSource = "user" if is_persons else "agent"
    checkpoint = await executor.turns.checkpoint_id(op.id)
    is_whole = op.path is None
    scope = Scope(
        op.path,
        files=not is_whole or op.files is not False,
        variables=is_whole if op.variables is None else op.variables,
        everything=op.everything,
        as_person=is_persons,
    )
    if not op.preview:
        await _check_rewind(request, checkpoint, scope)
    plan = await rewind(executor, checkpoint, principal, scope, preview=op.preview)
    changes = [operations.PathChange(change.path, change.kind) for change in plan.changes]
    variables = [operations.VariableChange(**asdict(change)) for change in plan.variables]
    return operations.RewindPlan(
        changes,
        plan.kept,
        plan.make_directories,
        plan.remove_directories,
        plan.notes,
        plan.directory_modes,
        variables,
    )


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


@handles(operations.RewindChange)
async def _rewind_change(request: Request, op: operations.RewindChange) -> operations.FileContents:
    executor = request.runtime.executor
    id = await executor.turns.checkpoint_id(op.id)
    for each in await rewind_changes(executor, id, everything=op.everything, path=op.path):
        return _contents(each)
    raise WireError(f"This rewind does not change the contents of {op.path}", "path")


@handles(operations.OwnTurns)
async def _own_turns(request: Request, op: operations.OwnTurns) -> list[operations.Checkpoint]:
    return list(map(_checkpoint, await request.runtime.executor.turns.own(request.actor)))


@handles(operations.OwnCheckpoint)
async def _own_checkpoint(request: Request, op: operations.OwnCheckpoint) -> int:
    turns = request.runtime.executor.turns
    return await turns.split(op.label, request.actor)


@handles(operations.OwnRewind)
async def _own_rewind(request: Request, op: operations.OwnRewind) -> operations.OwnRewindPlan:
    executor = request.runtime.executor
    is_running = executor.turns.is_announced
    is_own = executor.turns.is_of(request.actor)
    if is_running and not is_own and not op.preview:
        raise CheckpointError(
            "An agent of %oh_agent is working, and its work would be undone, too. Wait for it, or "
            "undo single edits with edit and undo_edit"
        )
    entries = await executor.turns.own(request.actor)
    own = [entry.id for entry in entries]
    turns = [entry.id for entry in entries if entry.kind == "turn"]
    if not turns if op.id is None else op.id not in own:
        raise CheckpointError(
            f"Turn {op.id} is not one of yours. Yours: {', '.join(map(str, own)) or 'none'}"
        )
    first = turns[-1] if op.id is None else op.id
    if foreign := await executor.turns.foreign_since(first, own):
        raise CheckpointError(
            f"Others worked since turn {first} (turns {', '.join(map(str, foreign))}), and their "
            "work would be undone, too. Ask the person to rewind"
        )
    # The prompt of such an agent is a cell that waits for it.
    scope = Scope(
        as_person=False,
        in_cell=is_running and is_own,
        by_owner=is_own,
        owner=request.actor.owner,
    )
    if not op.preview:
        await _check_rewind(request, first, scope)
    plan = await rewind(executor, first, "agent", scope, preview=op.preview)
    return operations.OwnRewindPlan(first, str(plan))


def _checkpoint(entry: Checkpoint) -> operations.Checkpoint:
    return operations.Checkpoint(
        id=entry.id,
        time=entry.time,
        kind=entry.kind,
        label=entry.label,
        who=entry.who,
        ended=not entry.is_open and entry.kind != "mark",
        files=entry.extra.get("files", []),
        cells=entry.extra.get("cells", 0),
        variables=entry.extra.get("changed_variables", []),
    )
