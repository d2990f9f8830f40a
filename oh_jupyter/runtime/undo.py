"""Undo of one change, or of the turns since a checkpoint, as one Action in the log."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from oh_jupyter.editor import ChangedFile
from oh_jupyter.errors import CheckpointError
from oh_jupyter.events import FileEditAction, MCPAction, MCPObservation, Observation
from oh_jupyter.runtime.rewind import Scope
from oh_jupyter.runtime.session_changes import has_edits, rewound_files, session_changes

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import RewindPlan
    from oh_jupyter.events import EventSource
    from oh_jupyter.runtime.executor import ActionExecutor


async def rewind(
    executor: ActionExecutor,
    id: int,
    source: EventSource,
    scope: Scope,
    *,
    preview: bool = False,
) -> RewindPlan:
    """Undo the turns since a checkpoint, or with ``preview`` report what that would change.

    A CheckpointError if there is no such checkpoint, an agent is working, or a file cannot be
    written.
    """
    if preview:
        return await executor.turns.rewind(id, scope, preview=True)
    arguments: dict[str, Any] = {"checkpoint": id, "everything": scope.everything}
    arguments |= {} if scope.path is None else {"path": scope.path}
    arguments |= {} if scope.files else {"files": False}
    arguments |= {} if scope.variables or scope.path is not None else {"variables": False}
    action = MCPAction("rewind", arguments)
    plan: RewindPlan | None = None
    failure: CheckpointError | None = None

    async def execute() -> Observation:
        nonlocal plan, failure
        try:
            plan = await executor.turns.rewind(id, scope, preview=False)
        except CheckpointError as error:
            failure = error
            raise
        return MCPObservation(str(plan), name="rewind", arguments=action.arguments)

    observation = await executor.run_action(action, source, principal="user", execute=execute)
    if plan is None:
        raise failure or CheckpointError(observation.content)
    return plan


async def rewind_changes(
    executor: ActionExecutor, id: int, *, everything: bool = False, path: str | None = None
) -> list[ChangedFile]:
    """Return what a rewind would change in files, or in one, from their state now.

    A CheckpointError if there is no such checkpoint, or the files cannot be read.
    """
    scope = Scope(variables=False, everything=everything)
    await executor.turns.rewind(id, scope, preview=True)  # ends a turn that it would include
    contents = await executor.in_thread(
        partial(executor.turns.checkpoints.rewind_contents, id, everything=everything, path=path)
    )
    return [ChangedFile.between(name, *contents[name]) for name in sorted(contents)]


async def undo_change(
    executor: ActionExecutor, path: str, *, redo: bool, everything: bool
) -> Observation | RewindPlan:
    """Undo or redo the last edit of a file as the person, or else what commands changed.

    With ``everything``, changes that others made meanwhile are undone as well.
    """
    checkpoint = None
    if redo:
        with suppress(CheckpointError):  # the redo of an edit needs no checkpoints
            checkpoint = (await rewound_files(executor)).get(Path(path))
    else:
        checkpoint = await _first_change(executor, path)
    if checkpoint is None:
        action = FileEditAction(path=path, command="redo_edit" if redo else "undo_edit")
        return await executor.run_action(action, "user")
    scope = Scope(path, variables=False, everything=everything)
    return await rewind(executor, checkpoint, "user", scope)


async def _first_change(executor: ActionExecutor, path: str) -> int | None:
    """Return the first turn whose commands changed a file, or None if an edit can be undone."""
    edited = await session_changes(executor, by_commands=False)
    if any(str(each.path) == path and has_edits(each, executor.editor) for each in edited):
        return None
    if not any(str(each.path) == path for each in await session_changes(executor)):
        return None
    find = executor.turns.checkpoints.first_change
    return cast("int | None", await executor.in_thread(find, path, executor.start_time))
