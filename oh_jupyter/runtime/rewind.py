"""A rewind of a workspace's files and a kernel's variables to a checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from oh_jupyter.errors import CheckpointError

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Checkpoints, RewindPlan, VariableChange


@dataclass(frozen=True)
class Scope:
    """Extent of a rewind.

    Attributes:
        path: The only file, or None for all.
        files: Whether files are restored.
        variables: Whether variables are restored.
        everything: Whether to overwrite what others changed since.
        in_cell: Whether a person's cell asks, so that it may be running.
        as_person: Whether a person asks; otherwise others' changes of variables always stay.
        by_owner: Whether the agent of the running turn asks, which then continues in a new one.
        owner: Owner of the turns that an agent undoes, to which others' turns do not belong; "" for
            all turns.
    """

    path: str | None = None
    files: bool = True
    variables: bool = True
    everything: bool = False
    in_cell: bool = False
    as_person: bool = True
    by_owner: bool = False
    owner: str = ""


class Variables(Protocol):
    """The variables of the kernel that the turns are in."""

    async def mark(self, checkpoint: int, *, in_cell: bool) -> None:
        """Keep all variables as of a mark."""

    async def preview(
        self, checkpoint: int, scope: Scope
    ) -> tuple[list[VariableChange], list[str]]:
        """Return what a rewind would do, and its limits; raise CheckpointError if a cell runs."""

    async def rewind(
        self, checkpoint: int, new_checkpoint: int, scope: Scope
    ) -> list[VariableChange]:
        """Restore the variables; raise CheckpointError if a cell runs."""


@dataclass(frozen=True)
class Rewind:
    """A rewind to a checkpoint.

    Attributes:
        checkpoints: The checkpoints of the workspace.
        variables: The kernel's variables, if they are within reach.
        in_thread: Calls a function in a thread.
        id: The checkpoint.
        scope: Its extent.
    """

    checkpoints: Checkpoints
    variables: Variables | None
    in_thread: Callable[..., Awaitable[Any]]
    id: int
    scope: Scope

    async def preview(self) -> RewindPlan:
        """Return what ``execute`` would do; a running cell is a note."""
        from oh_jupyter.checkpoints import RewindPlan

        try:
            variables = await self.preview_variables()
        except CheckpointError as error:
            variables = RewindPlan(notes=[str(error)])
        return await self._with_files(variables, self.checkpoints.preview)

    async def preview_variables(self) -> RewindPlan:
        """Return the part of the plan for variables; raise CheckpointError if a cell runs."""
        from oh_jupyter.checkpoints import RewindPlan

        if self.variables is None or not self.scope.variables:
            return RewindPlan()
        rows, notes = await self.variables.preview(self.id, self.scope)
        return RewindPlan(variables=rows, notes=notes)

    async def execute(self, variables: RewindPlan) -> RewindPlan:
        """Restore files, then the variables of their part of the plan; return what was done.

        Raises:
            CheckpointError: The files cannot be restored, or a cell runs.
        """
        rewind = partial(self.checkpoints.rewind, owner=self.scope.owner)
        plan = await self._with_files(variables, rewind)
        if not plan.variables:
            return plan
        assert self.variables is not None, "otherwise there is no plan for them"
        entries: list[Checkpoint] = await self.in_thread(self.checkpoints.entries)
        # Another kernel may have added one since.
        own = next(each.id for each in reversed(entries) if each.extra.get("target") == self.id)
        changes = await self.variables.rewind(self.id, own, self.scope)
        return replace(plan, variables=changes)

    async def _with_files(
        self, variables: RewindPlan, call: Callable[..., RewindPlan]
    ) -> RewindPlan:
        """Return the plan for variables with that for files, which ``call`` makes or executes."""
        scope = self.scope
        turns = await self.in_thread(self.checkpoints.turns_of, scope.owner)
        files: RewindPlan = await self.in_thread(
            lambda: call(
                self.id,
                everything=scope.everything,
                path=scope.path,
                files=scope.files,
                turns=turns,
            )
        )
        return replace(files, variables=variables.variables, notes=[*files.notes, *variables.notes])
