"""Turns of agents, each with a checkpoint to which a person can return."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Sequence,
)
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import CheckpointError
from oh_jupyter.events import (
    Action,
    CmdRunAction,
    EventSource,
    FileEditAction,
    IPythonRunCellAction,
)
from oh_jupyter.events.actor import UNKNOWN_ACTOR, Actor
from oh_jupyter.events.title import title
from oh_jupyter.runtime.agent_steps import AgentSteps, kernel_root, may_change_files
from oh_jupyter.runtime.rewind import Rewind, Scope, Variables
from oh_jupyter.runtime.shell_states import ShellStates

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Checkpoints, RewindPlan
    from oh_jupyter.shell import ShellSession

logger = logging.getLogger(__name__)

REPORT_SECONDS = 0.5
"""How often at most the end of steps is reported to those who show changes."""

SESSION_PAUSE_SECONDS = 600.0
"""Longest pause within a turn of a client whose session is known."""

RETRY_SECONDS = 300.0
"""Pause after a failed checkpoint, such as on a full disk."""

CLOSE_SECONDS = 3.0
"""How long a closing runtime waits for the end of its last turn."""


class Turns:
    """Starts and ends turns of agents, on request or by the Actions that run."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        workspace_dir: str,
        find_shell: Callable[[], ShellSession | None],
        find_shell_of: Callable[[Action], ShellSession | None],
        *,
        automatic: bool,
        pause_seconds: float,
        own_folders: Sequence[str] = (),
    ) -> None:
        self.configure(automatic, pause_seconds)
        self.on_recorded: Callable[[], None] = lambda: None
        """Called when the changes of steps are recorded."""
        self.on_rewound: Callable[[], None] = lambda: None
        """Called after a rewind of all files."""
        self.variables: Variables | None = None
        """The kernel's variables, if they are within reach."""
        self.notebook_file: Callable[[], str] = lambda: os.environ.get("JPY_SESSION_NAME", "")
        """Returns the path of the kernel's notebook, or ""."""
        self._in_thread = in_thread
        self._workspace_dir = workspace_dir
        self._own_folders = own_folders
        self._find_shell = find_shell
        self._shell_states = ShellStates(find_shell, workspace_dir)
        self._checkpoints: Checkpoints | None = None
        self.steps = AgentSteps(
            in_thread,
            lambda: self._checkpoints,
            lambda: self.notebook_file(),
            self._report,
        )
        self._find_shell_of = find_shell_of
        self._announced_edits: set[str] = set()
        self._variables: set[str] = set()
        self._turn: Checkpoint | None = None
        self._part_of: int | None = None
        self._process = 0
        self._session = ""
        self._cells = 0
        self.is_announced = False
        """Whether the current turn has a caller that ends it."""
        self._continued: dict[int, int] = {}
        self._last_action_time = 0.0
        self._is_closed = False
        self._lock = asyncio.Lock()
        self._report_timer: asyncio.TimerHandle | None = None

    def configure(self, automatic: bool, pause_seconds: float) -> None:
        """Set whether turns make checkpoints automatically, and which pause ends a turn."""
        self.problem = "" if automatic else "the setting checkpoints is 'off'"
        self._retry_time = 0.0 if automatic else math.inf
        self._is_automatic = automatic
        self._pause_seconds = pause_seconds

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the workspace."""
        if self._checkpoints is None:
            from oh_jupyter.checkpoints import Checkpoints

            self._checkpoints = Checkpoints(
                self._workspace_dir, own_folders=self._own_folders, is_watched=True
            )
        return self._checkpoints

    @property
    def attribution(self) -> str:
        """The way in which changes are attributed to agents or others, for people."""
        if self.problem:
            return f"not at all: {self.problem}"
        described = "" if self._checkpoints is None else self._checkpoints.attribution
        return described or "not yet: no agent has acted"

    @property
    def current_id(self) -> int | None:
        """The checkpoint of the agent's turn that is in progress, or None."""
        turn = self._turn
        return None if turn is None else turn.id

    async def before(self, action: Action, principal: EventSource, path: str = "") -> None:
        """Begin a step, and a turn if this Action is its first; a person's Action ends a turn.

        A turn with a step in progress continues beside a person's Action. ``path`` is the absolute
        path of the file that the Action edits, "" for none.
        """
        if self._has_given_up() or not may_change_files(action):
            return
        root = 0 if path else self._root_of(action)
        async with self._lock:
            try:
                if principal == "user":
                    await self._before_persons(action, root)
                else:
                    await self._before_agents(action, root)
            except CheckpointError as error:
                self._give_up(error)

    def _root_of(self, action: Action) -> int:
        """Return the process whose descendants do an Action's work, as far as it is known yet."""
        shell = self._find_shell_of(action)
        return kernel_root() if shell is None else shell.guardian_pid or kernel_root()

    async def _before_persons(self, action: Action, root: int) -> None:
        if not (self.is_announced or self.steps.is_under_way):
            self._part_of = None
            await self._end()
        label = self._label(action)
        waits = isinstance(action, CmdRunAction | IPythonRunCellAction)
        await self.steps.begin(_key(action), label, root=root, is_persons=True, waits=waits)

    async def _before_agents(self, action: Action, root: int) -> None:
        session = action.actor.conversation
        if not await self._continues(session):
            who, by = action.actor.name or "agent", action.actor.owner
            await self._begin(self._label(action), who, session, by)
        self._cells += isinstance(action, IPythonRunCellAction)
        if self._turn is not None:
            key, label, turn = _key(action), self._label(action), self._turn.id
            waits = isinstance(action, CmdRunAction | IPythonRunCellAction)
            await self.steps.begin(key, label, turn=turn, root=root, waits=waits)

    def _label(self, action: Action) -> str:
        return title(action, self._workspace_dir, purpose=True)

    async def start(self, action: Action) -> None:
        """Start the step of a command, which has waited for the shell until now."""
        await self.steps.start(_key(action))

    def start_cell(self) -> None:
        """Start the step of the agent's cell that has waited the longest; on the main thread."""
        if self.steps.is_under_way:
            with contextlib.suppress(CheckpointError):  # its end reports that
                self.checkpoints.start_next_step(kernel_root())

    async def after(self, action: Action, edited: Iterable[str] = ()) -> None:
        """End the step of an Action, the moment that it has returned.

        ``edited`` are the absolute paths of the files that it edited. A command that continues
        without its Action ends its step later.
        """
        shell = self._find_shell_of(action)
        unfinished = shell if shell is not None and shell.running else None
        root, pid = (0, 0) if shell is None else (self._root_of(action), shell.pid or 0)
        was_running = await self.steps.end(
            _key(action), list(edited), root=root, shell=pid, unfinished=unfinished
        )
        self._last_action_time = time.monotonic()
        if was_running:
            self._report()

    async def begin_work(self, key: Hashable, label: str) -> None:
        """Begin a step of the current turn without an Action, such as an agent's own tool."""
        async with self._lock:
            if self._turn is not None and not self._has_given_up():
                with contextlib.suppress(CheckpointError):  # reported with the next Action
                    root = self._process or kernel_root()
                    await self.steps.begin(key, label, turn=self._turn.id, root=root)

    async def end_work(self, key: Hashable) -> None:
        """End such a step."""
        async with self._lock:
            if await self.steps.end(key):
                self._report()

    async def announce_edit(self, action: FileEditAction) -> None:
        """Begin a turn or step for an edit that another program makes for an agent."""
        if not self._has_given_up():
            async with self._lock:
                try:
                    await self._before_agents(action, 0)
                    self._announced_edits.add(action.path)
                except CheckpointError as error:
                    self._give_up(error)

    async def finish_edit(self, path: str) -> None:
        """Record that an announced edit is done."""
        async with self._lock:
            self._announced_edits.discard(path)
            await self.steps.end(("edit", path), [path])
        self._last_action_time = time.monotonic()
        self._report()

    async def _end_announced_edits(self) -> None:
        """End the edits that were announced and not finished."""
        for path in self._announced_edits:
            await self.steps.end(("edit", path), [path])
        self._announced_edits.clear()

    def _report(self) -> None:
        """Report the recorded changes, in a moment for all steps until then."""
        if self._report_timer is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._report_timer = loop.call_later(REPORT_SECONDS, self._report_now)

    def _report_now(self) -> None:
        self._report_timer = None
        self.on_recorded()

    def note_variables(self, turn: int, names: Iterable[str]) -> None:
        """Record variables that a cell of a turn has changed; on any thread."""
        if turn == self.current_id:
            self._variables.update(names)

    def _facts(self) -> dict[str, Any]:
        return {"cells": self._cells, "changed_variables": sorted(self._variables)}

    async def begin(
        self, label: str, who: str, actor: Actor = UNKNOWN_ACTOR, process: int = 0
    ) -> int | None:
        """Start a turn that its caller ends; return its id, or None without checkpoints.

        ``process`` is the agent's, whose own changes are the turn's.
        """
        if self._has_given_up():
            return None
        async with self._lock:
            self._part_of, self._process = None, process
            try:
                await self._begin(label, who, by=actor.owner, is_announced=True)
            except CheckpointError as error:
                self._give_up(error)
                return None
            self.is_announced = True
            return None if self._turn is None else self._turn.id

    def end(self, id: int | None) -> asyncio.Task[None] | None:
        """End a turn from ``begin`` unless another has started; return the task that records it."""
        if self._turn is None:
            self.is_announced = False
        if self._turn is None or self._turn.id != self.latest(id):
            return None
        self.is_announced = False
        return run_in_background(self._end_announced())

    async def _end_announced(self) -> None:
        async with self._lock:
            with contextlib.suppress(CheckpointError):  # reported with the next turn
                await self._end()
        self._report()

    def latest(self, id: int | None) -> int | None:
        """Return the turn in which a turn continues after a mark or its own undo, or the turn."""
        while id in self._continued:
            id = self._continued[id]
        return id

    def is_of(self, actor: Actor) -> bool:
        """Return whether the current turn is of an agent's session or guest."""
        owner, turn = actor.owner, self._turn
        return bool(owner) and turn is not None and turn.extra.get("by") == owner

    async def split(self, label: str, actor: Actor) -> int:
        """Start a new turn of an agent's session and return its id, or raise CheckpointError."""
        if self.is_announced:
            raise CheckpointError(
                "Each prompt of %oh_agent is a turn already. Keep copies of variables and files "
                "that you may need again"
            )
        if self._has_given_up():
            raise CheckpointError(f"There are no checkpoints now: {self.problem}")
        async with self._lock:
            self._part_of = None
            who, session = actor.name or "agent", actor.conversation
            await self._begin(label, who, session, actor.owner)
            assert self._turn is not None
            self._last_action_time = time.monotonic()
            return self._turn.id

    async def mark(self, label: str) -> Checkpoint:
        """Make a checkpoint; raise CheckpointError on failure.

        A turn ends there, so that a rewind to the mark undoes what its agent does afterwards.
        """
        async with self._lock:
            turn = self._turn
            self._part_of = None
            await self._end_announced_edits()
            await self._end(with_steps=False)
            checkpoint: Checkpoint = await self._in_thread(
                lambda: self.checkpoints.begin(label, who="user", kind="mark")
            )
            await self._shell_states.save(checkpoint.id)
            if self._is_automatic:
                self._clear_problem()
            if turn is not None and (self.is_announced or self.steps.is_under_way):
                await self._continue(turn)
            return checkpoint

    async def checkpoint_id(self, id: int | None) -> int:
        """Return an id, or for None that of the last turn that is not undone."""
        if id is not None:
            return id
        last: Checkpoint = await self._in_thread(self.checkpoints.last_turn)
        return last.id

    async def mark_variables(self, id: int, *, in_cell: bool) -> None:
        """Keep all variables as of a mark."""
        if self.variables is not None:
            await self.variables.mark(id, in_cell=in_cell)

    async def rewind(self, id: int, scope: Scope, *, preview: bool) -> RewindPlan:
        """Undo the turns since a checkpoint, or report what that would change.

        Raises CheckpointError if an agent is working, or the files cannot be restored.
        """
        if self.is_announced and not (preview or scope.by_owner):
            raise CheckpointError(
                "An agent is working. Wait for it, or end it with %oh_agent stop, then rewind."
            )
        async with self._lock:
            await self._end_announced_edits()
            if not self.is_announced and not preview:
                self._part_of = None
                await self._end(with_steps=False)
            await self._in_thread(lambda: self.checkpoints.get(id))
            rewind = Rewind(self.checkpoints, self.variables, self._in_thread, id, scope)
            returns_shell = scope.files and scope.path is None
            shell_notes = self._shell_states.notes(id) if returns_shell else []
            if preview:
                plan = await rewind.preview()
                return replace(plan, notes=[*plan.notes, *shell_notes])
            variables = await rewind.preview_variables()
            async with self._replaced():
                plan = await rewind.execute(variables)
            if not returns_shell:
                return plan
            self.on_rewound()
            failures = await self._shell_states.restore(id)
            return replace(plan, notes=[*plan.notes, *(failures or shell_notes)])

    @contextlib.asynccontextmanager
    async def _replaced(self) -> AsyncIterator[None]:
        """End an announced turn before its agent undoes it, and continue it in a new one."""
        if not self.is_announced or self._turn is None:
            yield
            return
        if self.steps.is_under_way:
            raise CheckpointError(
                "One of your commands or cells is still running, so its changes cannot be undone. "
                "Wait for it or stop it, then rewind."
            )
        turn = self._turn
        await self._end()
        try:
            yield
        except BaseException:  # it was not undone
            self._turn = await self._in_thread(
                lambda: self.checkpoints.resume(turn.id, in_steps=True)
            )
            raise
        await self._continue(turn)

    async def _continue(self, turn: Checkpoint, part_of: int | None = None) -> None:
        """Start another turn in which an ended one continues, as a part of one if it is named."""
        by = turn.extra.get("by", "")
        try:
            await self._begin(turn.label, turn.who, self._session, by, part_of)
            if self._turn is not None:
                self._continued[turn.id] = self._turn.id
        except CheckpointError as error:
            self._give_up(error)

    async def settle(self) -> None:
        """Close the turns of dead kernels, so that later changes do not count as theirs."""
        with contextlib.suppress(CheckpointError):  # reported when a checkpoint is needed
            async with self._lock:
                await self._in_thread(lambda: self.checkpoints.settle())

    async def standing(self) -> frozenset[int]:
        """Return the ids of the turns that no rewind has undone."""
        turns: list[Checkpoint] = await self._in_thread(lambda: self.checkpoints.standing_turns())
        return frozenset(turn.id for turn in turns)

    async def own(self, actor: Actor) -> list[Checkpoint]:
        """Return an agent's turns that no rewind has undone, and its rewinds, oldest first.

        Of rewinds, only those are returned after which it has made no turn.
        """
        owner, standing = actor.owner, await self.standing()
        own = [entry for entry in await self.entries() if owner and entry.extra.get("by") == owner]
        last = max((entry.id for entry in own if entry.id in standing), default=0)
        return [
            entry
            for entry in own
            if entry.id in standing or (entry.kind == "rewind" and entry.id > last)
        ]

    async def foreign_since(self, first: int, own: Collection[int]) -> list[int]:
        """Return the standing turns of this kernel since one that are not an agent's own."""
        standing, process = await self.standing(), self.checkpoints.process
        return [
            entry.id
            for entry in await self.entries()
            if entry.id in standing
            and entry.id > first
            and entry.id not in own
            and entry.owner == process
        ]

    async def entries(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first, each turn once."""
        from oh_jupyter.checkpoints.journal import merged_turns

        await self.settle()
        entries: list[Checkpoint] = await self._in_thread(self.checkpoints.entries)
        is_open = self.is_announced or self.steps.is_under_way
        return merged_turns(
            replace(entry, is_open=is_open, extra={**entry.extra, **self._facts()})
            if entry.id == self.current_id
            else entry
            for entry in entries
        )

    async def close(self) -> None:
        """End the last turn, so that later changes count as others'."""
        if self._report_timer is not None:
            self._report_timer.cancel()
        self._is_closed = True
        async with self._lock:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._end()
            except (CheckpointError, TimeoutError) as error:
                # The next kernel ends it by what its process recorded.
                logger.warning("The last turn of an agent was not ended: %s", error)
        self.steps.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    async def _begin(
        self,
        label: str,
        who: str,
        session: str = "",
        by: str = "",
        part_of: int | None = None,
        is_announced: bool | None = None,
    ) -> None:
        extra: dict[str, Any] = {"by": by} if by else {}
        if part_of is None and session and self._is_recent(session):
            part_of = self._part_of
        if part_of is not None:
            extra["part_of"] = part_of
        await self._end(with_steps=False)
        lists_others = self.is_announced if is_announced is None else is_announced
        process = self._process if lists_others else 0
        turn: Checkpoint = await self._in_thread(
            lambda: self.checkpoints.begin(
                label,
                who=who,
                extra=extra,
                in_steps=True,
                lists_others=lists_others,
                process=process,
            )
        )
        await self._shell_states.save(turn.id)
        self.steps.follow_events()
        self._turn, self._session, self._cells, self._variables = turn, session, 0, set()
        self._part_of = extra.get("part_of", turn.id)
        self._clear_problem()

    def _clear_problem(self) -> None:
        self.problem, self._retry_time = "", 0.0

    async def _end(self, *, with_steps: bool = True) -> None:
        """End the current turn; without its steps, these continue beside what follows."""
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        facts = self._facts()
        if with_steps:
            await self._end_announced_edits()
            await self.steps.end_all()
        await self._now_or_in_thread(
            lambda: self.checkpoints.end(turn.id, extra=facts, with_steps=with_steps)
        )

    async def _now_or_in_thread(self, call: Callable[[], object]) -> None:
        try:
            await self._in_thread(call)
        except RuntimeError:  # at interpreter exit, pools accept no work
            call()

    def _is_recent(self, session: str) -> bool:
        """Return whether an Action belongs to the last turn, by its client's session and the pause.

        Without a session, a short pause decides.
        """
        pause_seconds = time.monotonic() - self._last_action_time
        if session and session == self._session:
            return pause_seconds <= max(SESSION_PAUSE_SECONDS, self._pause_seconds)
        return session == self._session and pause_seconds <= self._pause_seconds

    async def _continues(self, session: str) -> bool:
        """Return whether the turn continues, in a new part after a mark or rewind by others."""
        turn = self._turn
        if turn is None:
            return False
        is_current = self.is_announced or self.steps.is_under_way or self._is_recent(session)
        if not is_current:
            self._part_of = None
            return False
        if await self._in_thread(lambda: self.checkpoints.is_split(turn.id)):
            await self._continue(turn, turn.extra.get("part_of", turn.id))
        return True

    def _give_up(self, error: CheckpointError) -> None:
        self._turn = None
        self.problem = str(error)
        # A workspace that is too large stays so; a person's mark tries again.
        pause = math.inf if error.is_lasting else RETRY_SECONDS
        self._retry_time = time.monotonic() + pause
        logger.warning("Turns of agents get no checkpoints now: %s", error)

    def _has_given_up(self) -> bool:
        return bool(self.problem) and time.monotonic() < self._retry_time


def _key(action: Action) -> Hashable:
    """Return the key of an Action's step."""
    return action.id if action.id is not None else ("edit", getattr(action, "path", ""))
