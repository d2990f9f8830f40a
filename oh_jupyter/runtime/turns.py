"""Turns of agents: each begins a checkpoint, so that a person can go back to before it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import CheckpointError, ShellError
from oh_jupyter.events import (
    Action,
    CmdRunAction,
    EventSource,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
)

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Checkpoints, RewindPlan
    from oh_jupyter.shell import ShellSession, ShellSnapshot

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 2.0
"""How long an agent is quiet until its changes are told from those of others."""


CLOCK_SECONDS = 0.1
"""How much coarser than the clock the times of files may be."""

SHELL_SECONDS = 10.0
"""How long the shell may take to tell its state, or to go back to one."""

RETRY_SECONDS = 300.0
"""How long turns go without checkpoints after one failed, as on a full disk."""


class AgentWork:
    """When an agent was at work in a turn, and which files it certainly changed itself."""

    def __init__(self, notebook: str) -> None:
        """Take the kernel's own notebook, which people's tabs save, or an empty text."""
        self._notebook = notebook and os.path.realpath(notebook)
        self._edited: set[str] = set()
        self._going_on: dict[Hashable, float] = {}
        self._spans: list[tuple[float, float]] = []

    def begin(self, work: Hashable) -> None:
        """Note that the agent is at work from now on."""
        self._going_on.setdefault(work, time.time())

    def end(self, work: Hashable) -> bool:
        """Note that it is done with that, and tell whether it was at it."""
        if work not in self._going_on:
            return False
        self._spans.append((self._going_on.pop(work), time.time()))
        return True

    def edit(self, path: str) -> None:
        """Note that it changed a file itself."""
        self._edited.add(os.path.realpath(path))

    def is_of_turn(self, path: Path, changed: float) -> bool:
        """Whether a change is the agent's, as far as its time and its place tell."""
        place = os.path.realpath(path)
        if place in self._edited:
            return True
        if place == self._notebook:
            return False
        spans = [*self._spans, *((begin, math.inf) for begin in self._going_on.values())]
        return any(begin - CLOCK_SECONDS <= changed <= end + SETTLE_SECONDS for begin, end in spans)


class Turns:
    """Begins and ends the turns of agents, by what is announced or by what they change."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        workspace_dir: str,
        find_shell: Callable[[], ShellSession | None],
        *,
        automatic: bool,
        pause_seconds: float,
    ) -> None:
        self.problem = "" if automatic else "the setting checkpoints is 'off'"
        self._retry_time = 0.0 if automatic else math.inf
        self._in_thread = in_thread
        self._workspace_dir = workspace_dir
        self._find_shell = find_shell
        self._pause_seconds = pause_seconds
        # In memory alone: the shell ends with the kernel, and its variables may be secrets.
        self._shells: dict[int, ShellSnapshot | None] = {}
        self._kept: Checkpoints | None = None
        self.work = AgentWork("")
        self._turn: Checkpoint | None = None
        self._is_announced = False
        self._last_action_time = 0.0
        self._is_closed = False
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the workspace."""
        if self._kept is None:
            from oh_jupyter.checkpoints import Checkpoints

            self._kept = Checkpoints(self._workspace_dir)
        return self._kept

    async def before(self, action: Action, principal: EventSource) -> None:
        """Begin a turn if this Action is the first of one, or end it if a person acts."""
        if self._is_given_up() or not _may_change_files(action):
            return
        if not self._is_announced:
            async with self._lock:
                self._cancel_timer()
                try:
                    if principal == "user":
                        await self._end()
                    elif not await self._goes_on():
                        await self._begin(action.message, "agent")
                except CheckpointError as problem:
                    self._give_up(problem)
        if principal != "user":
            self.work.begin(action.id)
            if isinstance(action, FileEditAction | FileWriteAction):
                self.work.edit(os.path.join(self._workspace_dir, action.path))

    def after(self, action: Action) -> None:
        """Note that an Action ended; after a pause the changes so far are the turn's."""
        shell = self._find_shell()
        is_agents = self.work.end(action.id)
        if shell is None or not shell.running:
            self.work.end(shell)
        elif is_agents:  # the command goes on without the Action
            self.work.begin(shell)
        if self._turn is None or self._is_announced or not _may_change_files(action):
            return
        self._last_action_time = time.monotonic()
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)

    async def begin(self, label: str, who: str) -> int | None:
        """Begin a turn that its caller will end; the checkpoint's id, None if there can be none."""
        if self._is_given_up():
            return None
        async with self._lock:
            self._cancel_timer()
            try:
                await self._begin(label, who)
            except CheckpointError as problem:
                self._give_up(problem)
                return None
            self._is_announced = True
            return None if self._turn is None else self._turn.id

    def end(self, id: int | None) -> asyncio.Task[None] | None:
        """End a turn that ``begin`` began, unless another one began; what notes its end."""
        if self._turn is None or self._turn.id != id:
            return None
        self._is_announced = False
        self._cancel_timer()
        return run_in_background(self._note_end())

    async def mark(self, label: str) -> Checkpoint:
        """Make a checkpoint that belongs to no turn; a CheckpointError if that cannot be."""
        async with self._lock:
            checkpoint: Checkpoint = await self._in_thread(
                lambda: self.checkpoints.begin(label, who="user", kind="mark")
            )
            await self._keep_shell(checkpoint)
            return checkpoint

    async def rewind(
        self, id: int, *, everything: bool, preview: bool, path: str | None = None
    ) -> RewindPlan:
        """Undo the turns since a checkpoint, or of these one file, or tell what that would do.

        A CheckpointError if an agent is at work, or the files cannot be brought back.
        """
        if self._is_announced and not preview:
            raise CheckpointError(
                "An agent is at work. Wait for it, or end it with %oh_agent stop, and rewind then."
            )
        async with self._lock:
            if not self._is_announced:
                self._cancel_timer()
                await self._end()
            call = self.checkpoints.preview if preview else self.checkpoints.rewind
            plan: RewindPlan = await self._in_thread(
                lambda: call(id, everything=everything, path=path)
            )
            if preview or path is not None:
                return plan
            return replace(plan, notes=[*plan.notes, *await self._restore_shell(id)])

    async def close(self) -> None:
        """Stop waiting for pauses; the last turn ends where the next one begins."""
        self._cancel_timer()
        self._is_closed = True
        async with self._lock:
            pass

    async def _begin(self, label: str, who: str) -> None:
        await self._end()
        turn: Checkpoint = await self._in_thread(lambda: self.checkpoints.begin(label, who=who))
        await self._keep_shell(turn)
        self.work = AgentWork(os.environ.get("JPY_SESSION_NAME", ""))
        self._turn = turn
        self.problem = ""

    async def _keep_shell(self, checkpoint: Checkpoint) -> None:
        """Note where the shell is and what it exports, if it can be asked."""
        shell = self._find_shell()
        if shell is None:
            self._shells[checkpoint.id] = None
        elif not shell.running:
            with contextlib.suppress(ShellError, TimeoutError):
                async with asyncio.timeout(SHELL_SECONDS):
                    self._shells[checkpoint.id] = await shell.snapshot_async()

    async def _restore_shell(self, id: int) -> list[str]:
        """Bring the shell's directory and variables back; what could not be, as notes."""
        shell = self._find_shell()
        if shell is None:
            return []
        if id not in self._shells:
            return ["The shell's directory and variables stay as they are: nobody kept them then."]
        try:
            async with asyncio.timeout(SHELL_SECONDS):
                then = self._shells[id]
                if then is None:  # it had not been started
                    now = await shell.snapshot_async()
                    then = replace(now, cwd=self._workspace_dir)
                await shell.restore_async(then)
        except (ShellError, TimeoutError) as problem:
            reason = str(problem) or "a command runs in it"
            return [f"The shell's directory and variables stay as they are: {reason}"]
        return []

    async def _end(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            if turn.end is None:  # otherwise what came since is not the agent's
                is_of_turn = self.work.is_of_turn
                await self._in_thread(lambda: self.checkpoints.end(turn.id, is_of_turn))

    async def _goes_on(self) -> bool:
        """Whether the turn goes on: the agent did not pause, and nobody else changed a file."""
        if self._turn is None:
            return False
        if self._turn.end is None:
            return True
        if time.monotonic() - self._last_action_time > self._pause_seconds:
            return False
        if not await self._in_thread(lambda: self.checkpoints.is_at_end(self._turn)):
            return False
        self._turn = replace(self._turn, end=None)
        return True

    def _settle(self) -> None:
        run_in_background(self._note_end())

    async def _note_end(self) -> None:
        async with self._lock:
            if self._turn is None or self._is_announced or self._is_closed:
                return
            turn, is_of_turn = self._turn, self.work.is_of_turn
            try:
                self._turn = await self._in_thread(
                    lambda: self.checkpoints.end(turn.id, is_of_turn)
                )
            except CheckpointError as problem:
                self._give_up(problem)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, problem: CheckpointError) -> None:
        self._turn = None
        self.problem = str(problem)
        self._retry_time = time.monotonic() + RETRY_SECONDS
        logger.warning("Turns of agents get no checkpoints now: %s", problem)

    def _is_given_up(self) -> bool:
        return bool(self.problem) and time.monotonic() < self._retry_time


def _may_change_files(action: Action) -> bool:
    if isinstance(action, FileEditAction):
        return action.command != "view"
    return isinstance(action, CmdRunAction | FileWriteAction | IPythonRunCellAction | MCPAction)
