"""Turns of agents, each with a checkpoint to which a person can return."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import CheckpointError
from oh_jupyter.events import Action, EventSource, IPythonRunCellAction
from oh_jupyter.events.actor import agent_name, session_of, turn_owner
from oh_jupyter.moves import note_edit
from oh_jupyter.runtime.agent_work import AgentWork
from oh_jupyter.runtime.rewind import Rewind, Scope, Variables
from oh_jupyter.runtime.shell_states import ShellStates
from oh_jupyter.runtime.turn_titles import may_change_files, title_of

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Checkpoints, RewindPlan
    from oh_jupyter.shell import ShellSession

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 2.0
"""Quiet time after which a turn's changes are recorded."""

SESSION_PAUSE_SECONDS = 600.0
"""Longest pause within a turn of a client whose session is known."""

RETRY_SECONDS = 300.0
"""Pause after a failed checkpoint, such as on a full disk."""

ALIVE_SECONDS = 0.5
"""Interval at which a turn records that its kernel is alive."""

CLOSE_SECONDS = 3.0
"""How long a closing runtime waits for the end of its last turn."""


class Turns:
    """Starts and ends turns of agents, on request or by the Actions that run."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        workspace_dir: str,
        find_shell: Callable[[], ShellSession | None],
        *,
        automatic: bool,
        pause_seconds: float,
        own_folders: Sequence[str] = (),
    ) -> None:
        self.configure(automatic, pause_seconds)
        self.on_settled: Callable[[], None] = lambda: None
        """Called when the changes of a turn so far are recorded."""
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
        self.work = AgentWork("", SETTLE_SECONDS)
        self._turn: Checkpoint | None = None
        self._part_of: int | None = None
        self._session = ""
        self._cells = 0
        self.is_announced = False
        """Whether the current turn has a caller that ends it."""
        self._continued: dict[int, int] = {}
        self._last_action_time = 0.0
        self._is_closed = False
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._alive_timer: asyncio.TimerHandle | None = None

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

            self._checkpoints = Checkpoints(self._workspace_dir, own_folders=self._own_folders)
        return self._checkpoints

    @property
    def current_id(self) -> int | None:
        """The checkpoint of the agent's turn that is in progress, or None."""
        turn = self._turn
        return None if turn is None else turn.id

    async def before(self, action: Action, principal: EventSource, path: str = "") -> None:
        """Start a turn if this Action is its first, or end the turn if a person acts.

        A command of the agent that is running continues in a new turn beside a person's edit; a
        person's command waits for it. ``path`` is the absolute path of the file that the Action
        edits, "" for none.
        """
        if self._has_given_up() or not may_change_files(action):
            return
        if not self.is_announced:
            async with self._lock:
                self._cancel_timer()
                try:
                    if principal == "user":
                        turn, work = self._turn, self.work
                        self._part_of = None
                        await self._end()
                        if turn is not None and path and work.is_under_way:
                            await self._continue(turn)
                            self.work.continue_from(work)
                    elif not await self._continues(session_of(action.actor)):
                        who = agent_name(action.actor) or "agent"
                        session, by = session_of(action.actor), turn_owner(action.actor)
                        await self._begin(title_of(action), who, session, by)
                except CheckpointError as error:
                    self._give_up(error)
        if principal != "user":
            self._cells += isinstance(action, IPythonRunCellAction)
            self.work.begin(action.id)
            if path:
                self.work.edit(path)
            self._note_work()

    def after(self, action: Action, edited: Iterable[str] = ()) -> None:
        """Record the end of an Action; a pause then settles the turn's changes.

        ``edited`` are the absolute paths of the files that it edited.
        """
        shell = self._find_shell()
        is_agents = self.work.end(action.id)
        if shell is None or not shell.running:
            self.work.end(shell)
        elif is_agents:  # the command continues without the Action
            self.work.begin(shell)
        if self._turn is None or not may_change_files(action):
            return
        if is_agents:
            self.note_edits(edited)
        self._note_work()
        self._last_action_time = time.monotonic()
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)

    def note_edits(self, paths: Iterable[str]) -> None:
        """Record that the turn's agent has edited files itself."""
        if self._turn is None:
            return
        for path in paths:
            self.work.edit(path)
            with contextlib.suppress(OSError):  # only other kernels need it
                note_edit(path, self._turn.owner)

    def note_variables(self, turn: int, names: Iterable[str]) -> None:
        """Record variables that a cell of a turn has changed; on any thread."""
        if turn == self.current_id:
            self.work.variables.update(names)

    def _facts(self) -> dict[str, Any]:
        return {"cells": self._cells, "changed_variables": sorted(self.work.variables)}

    async def begin(
        self, label: str, who: str, actor: Mapping[str, Any] | None = None
    ) -> int | None:
        """Start a turn that its caller ends; return its id, or None without checkpoints."""
        if self._has_given_up():
            return None
        async with self._lock:
            self._cancel_timer()
            self._part_of = None
            try:
                await self._begin(label, who, by=turn_owner(actor))
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
        self._cancel_timer()
        return run_in_background(self._note_end())

    def latest(self, id: int | None) -> int | None:
        """Return the turn in which a turn continues after a mark or its own undo, or the turn."""
        while id in self._continued:
            id = self._continued[id]
        return id

    def is_of(self, actor: Mapping[str, Any] | None) -> bool:
        """Return whether the current turn is of an agent's session or guest."""
        owner, turn = turn_owner(actor), self._turn
        return bool(owner) and turn is not None and turn.extra.get("by") == owner

    async def split(self, label: str, actor: Mapping[str, Any] | None) -> int:
        """Start a new turn of an agent's session and return its id, or raise CheckpointError."""
        if self.is_announced:
            raise CheckpointError(
                "Each prompt of %oh_agent is a turn already. Keep copies of variables and files "
                "that you may need again"
            )
        if self._has_given_up():
            raise CheckpointError(f"There are no checkpoints now: {self.problem}")
        async with self._lock:
            self._cancel_timer()
            self._part_of = None
            who, session = agent_name(actor) or "agent", session_of(actor)
            await self._begin(label, who, session, turn_owner(actor))
            assert self._turn is not None
            self._last_action_time = time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)
            return self._turn.id

    async def mark(self, label: str) -> Checkpoint:
        """Make a checkpoint; raise CheckpointError on failure.

        A turn ends there, so that a rewind to the mark undoes what its agent does afterwards.
        """
        async with self._lock:
            turn, work = self._turn, self.work
            self._part_of = None
            self._cancel_timer()
            await self._end()
            checkpoint: Checkpoint = await self._in_thread(
                lambda: self.checkpoints.begin(label, who="user", kind="mark")
            )
            await self._shell_states.save(checkpoint.id)
            if self._is_automatic:
                self._clear_problem()
            if turn is not None and (self.is_announced or work.is_under_way):
                await self._continue(turn, at=checkpoint)
                self.work.continue_from(work)
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
            if not self.is_announced:
                self._cancel_timer()
                self._part_of = None
                await self._end()
            await self._in_thread(lambda: self.checkpoints.get(id))
            rewind = Rewind(self.checkpoints, self.variables, self._in_thread, id, scope)
            if preview:
                return await rewind.preview()
            variables = await rewind.preview_variables()
            async with self._replaced():
                plan = await rewind.execute(variables)
            if not scope.files or scope.path is not None:
                return plan
            self.on_rewound()
            return replace(plan, notes=[*plan.notes, *await self._shell_states.restore(id)])

    @contextlib.asynccontextmanager
    async def _replaced(self) -> AsyncIterator[None]:
        """End an announced turn before its agent undoes it, and continue it in a new one."""
        if not self.is_announced or self._turn is None:
            yield
            return
        if self.work.is_under_way:
            raise CheckpointError(
                "One of your commands or cells is still running, so its changes cannot be undone. "
                "Wait for it or stop it, then rewind."
            )
        turn = self._turn
        self._cancel_timer()
        await self._end()
        try:
            yield
        except BaseException:  # it was not undone
            self._turn = await self._in_thread(lambda: self.checkpoints.resume(turn.id))
            self._beat()
            raise
        await self._continue(turn)

    async def _continue(self, turn: Checkpoint, at: Checkpoint | None = None) -> None:
        """Start another turn in which an ended one continues, now or at a checkpoint."""
        by = turn.extra.get("by", "")
        try:
            await self._begin(turn.label, turn.who, self._session, by, at=at)
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

    async def own(self, actor: Mapping[str, Any] | None) -> list[Checkpoint]:
        """Return the turns of an agent's session that no rewind has undone, oldest first."""
        await self._note_end()
        owner, standing = turn_owner(actor), await self.standing()
        return [
            entry
            for entry in await self.entries()
            if entry.id in standing and owner and entry.extra.get("by") == owner
        ]

    async def entries(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first, each turn once."""
        from oh_jupyter.checkpoints.journal import merged_turns

        await self.settle()
        return merged_turns(await self._in_thread(self.checkpoints.entries))

    async def close(self) -> None:
        """End the last turn, so that later changes count as others'."""
        self._cancel_timer()
        self._is_closed = True
        async with self._lock:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._end()
            except (CheckpointError, TimeoutError) as error:
                # The next kernel ends it by its last note.
                logger.warning("The last turn of an agent was not ended: %s", error)
        self._stop_beating()
        if self._checkpoints is not None:
            self._checkpoints.close()

    async def _begin(
        self, label: str, who: str, session: str = "", by: str = "", at: Checkpoint | None = None
    ) -> None:
        extra: dict[str, Any] = {"by": by} if by else {}
        if session and self._is_recent(session) and self._part_of is not None:
            extra["part_of"] = self._part_of
        await self._end()
        turn: Checkpoint = await self._in_thread(
            lambda: self.checkpoints.begin(label, who=who, extra=extra, at=at)
        )
        await self._shell_states.save(turn.id)
        self.work = AgentWork(self.notebook_file(), SETTLE_SECONDS, turn)
        self._turn, self._session, self._cells = turn, session, 0
        self._part_of = extra.get("part_of", turn.id)
        self._clear_problem()
        self._beat()

    def _clear_problem(self) -> None:
        self.problem, self._retry_time = "", 0.0

    def _note_work(self) -> None:
        if self._turn is not None:
            with contextlib.suppress(OSError):
                self.checkpoints.note(self.work.recorded(self._turn.id))

    def _beat(self) -> None:
        """Record periodically that the kernel is alive."""
        self._stop_beating()
        self._note_work()
        self._alive_timer = asyncio.get_running_loop().call_later(ALIVE_SECONDS, self._beat)

    def _stop_beating(self) -> None:
        if self._alive_timer is not None:
            self._alive_timer.cancel()
            self._alive_timer = None

    async def _end(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            self._stop_beating()
            if turn.is_open:  # otherwise later changes are not the agent's
                is_of_turn = self.work.is_of_turn
                facts = self._facts()
                await self._now_or_in_thread(
                    lambda: self.checkpoints.end(turn.id, is_of_turn, extra=facts)
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
        """Return whether the turn continues: it is recent, and others did nothing since."""
        turn = self._turn
        if turn is None:
            return False
        if turn.is_open:
            return True
        if not self._is_recent(session):
            self._part_of = None
            return False
        if not await self._in_thread(lambda: self.checkpoints.is_at_end(turn)):
            return False
        self._turn = await self._in_thread(lambda: self.checkpoints.resume(turn.id))
        self._beat()
        return True

    def _settle(self) -> None:
        run_in_background(self._note_end())

    async def _note_end(self) -> None:
        async with self._lock:
            if self._turn is None or self._is_closed or not self._turn.is_open:
                return
            turn, is_of_turn, is_open = self._turn, self.work.is_of_turn, self.is_announced
            facts = self._facts()
            try:
                self._turn = await self._in_thread(
                    lambda: self.checkpoints.end(turn.id, is_of_turn, is_open=is_open, extra=facts)
                )
                if self._turn.id != turn.id:
                    self._continued[turn.id] = self._turn.id
                    self._note_work()
            except CheckpointError as error:
                self._give_up(error)
            if not is_open:
                self._stop_beating()
        self.on_settled()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, error: CheckpointError) -> None:
        self._turn = None
        self.problem = str(error)
        # A workspace that is too large stays so; a person's mark tries again.
        pause = math.inf if error.is_lasting else RETRY_SECONDS
        self._retry_time = time.monotonic() + pause
        self._stop_beating()
        logger.warning("Turns of agents get no checkpoints now: %s", error)

    def _has_given_up(self) -> bool:
        return bool(self.problem) and time.monotonic() < self._retry_time
