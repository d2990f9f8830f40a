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
from functools import cache
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
from oh_jupyter.moves import moved_to, moves

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Checkpoints, RewindPlan, Work
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

ALIVE_SECONDS = 0.5
"""How often a turn notes that its kernel is alive, in case that it dies."""

CLOSE_SECONDS = 3.0
"""How long the end of a kernel waits for the end of its last turn."""


class AgentWork:
    """When an agent was at work in a turn, and which files it certainly changed itself."""

    def __init__(self, notebook: str) -> None:
        """Take the kernel's own notebook, which people's tabs save, or an empty text."""
        self._notebook = notebook and os.path.realpath(notebook)
        self._edited: dict[str, float] = {}
        self._under_way: dict[Hashable, float] = {}
        self._spans: list[tuple[float, float]] = []

    def begin(self, work: Hashable) -> None:
        """Note that the agent is at work from now on."""
        self._under_way.setdefault(work, time.time())

    def end(self, work: Hashable) -> bool:
        """Note that it is done with that, and tell whether it was at it."""
        if work not in self._under_way:
            return False
        self._spans.append((self._under_way.pop(work), time.time()))
        return True

    def edit(self, path: str) -> None:
        """Note that it changed a file itself."""
        self._edited[os.path.realpath(path)] = time.time()

    def recorded(self, turn: int = 0) -> Work:
        """Return all of it as the checkpoints keep it."""
        from oh_jupyter.checkpoints import Work

        done = [(begin - CLOCK_SECONDS, end + SETTLE_SECONDS) for begin, end in self._spans]
        under_way = [(begin - CLOCK_SECONDS, None) for begin in self._under_way.values()]
        edited = {path: end + SETTLE_SECONDS for path, end in self._edited.items()}
        return Work(turn, [*done, *under_way], edited, self._notebook_now())

    def _notebook_now(self) -> str:
        if not self._notebook:
            return ""
        return moved_to(self._notebook, moves(_kernel_start_time()))

    def is_of_turn(self, path: Path, changed: float) -> bool:
        """Whether a change is the agent's, as far as its time and its place tell."""
        return self.recorded().is_of_turn(path, changed)


@cache
def _kernel_start_time() -> float:
    """Return when this process, whose notebook had its first name then, began."""
    import psutil

    return psutil.Process().create_time() - CLOCK_SECONDS


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
        self.configure(automatic, pause_seconds)
        self.on_settled: Callable[[], None] = lambda: None
        """Called when it is known what a turn has changed so far."""
        self._in_thread = in_thread
        self._workspace_dir = workspace_dir
        self._find_shell = find_shell
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
        self._alive_timer: asyncio.TimerHandle | None = None

    def configure(self, automatic: bool, pause_seconds: float) -> None:
        """Set whether turns make checkpoints by themselves, and after which pause one ends."""
        self.problem = "" if automatic else "the setting checkpoints is 'off'"
        self._retry_time = 0.0 if automatic else math.inf
        self._is_automatic = automatic
        self._pause_seconds = pause_seconds

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
            self._note_work()

    def after(self, action: Action) -> None:
        """Note that an Action ended; after a pause the changes so far are the turn's."""
        shell = self._find_shell()
        is_agents = self.work.end(action.id)
        if shell is None or not shell.running:
            self.work.end(shell)
        elif is_agents:  # the command goes on without the Action
            self.work.begin(shell)
        if self._turn is None or not _may_change_files(action):
            return
        if isinstance(action, FileEditAction | FileWriteAction) and is_agents:
            self.work.edit(os.path.join(self._workspace_dir, action.path))
        self._note_work()
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
            if self._is_automatic:
                self._clear_problem()
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

    async def settle(self) -> None:
        """Close turns of kernels that died, so that nothing since counts as theirs."""
        with contextlib.suppress(CheckpointError):  # it is reported where a checkpoint is needed
            async with self._lock:
                await self._in_thread(lambda: self.checkpoints.settle())

    async def entries(self) -> list[Checkpoint]:
        """Return the checkpoints, the oldest first."""
        await self.settle()
        entries: list[Checkpoint] = await self._in_thread(self.checkpoints.entries)
        return entries

    async def close(self) -> None:
        """End the last turn: what comes after its kernel is others'."""
        self._cancel_timer()
        self._is_closed = True
        async with self._lock:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._end()
            except (CheckpointError, TimeoutError) as error:
                # The next kernel ends it, by what was noted.
                logger.warning("The last turn of an agent was not ended: %s", error)
        self._stop_beating()
        if self._kept is not None:
            self._kept.close()

    async def _begin(self, label: str, who: str) -> None:
        await self._end()
        turn: Checkpoint = await self._in_thread(lambda: self.checkpoints.begin(label, who=who))
        await self._keep_shell(turn)
        self.work = AgentWork(os.environ.get("JPY_SESSION_NAME", ""))
        self._turn = turn
        self._clear_problem()
        self._beat()

    def _clear_problem(self) -> None:
        self.problem, self._retry_time = "", 0.0

    def _note_work(self) -> None:
        if self._turn is not None:
            with contextlib.suppress(OSError):
                self.checkpoints.note(self.work.recorded(self._turn.id))

    def _beat(self) -> None:
        """Note that the kernel is alive, now and again."""
        self._stop_beating()
        self._note_work()
        self._alive_timer = asyncio.get_running_loop().call_later(ALIVE_SECONDS, self._beat)

    def _stop_beating(self) -> None:
        if self._alive_timer is not None:
            self._alive_timer.cancel()
            self._alive_timer = None

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
            self._stop_beating()
            if turn.is_open:  # otherwise what came since is not the agent's
                is_of_turn = self.work.is_of_turn
                await self._now_or_in_thread(lambda: self.checkpoints.end(turn.id, is_of_turn))

    async def _now_or_in_thread(self, call: Callable[[], object]) -> None:
        try:
            await self._in_thread(call)
        except RuntimeError:  # at the interpreter's exit no pool takes work any more
            call()

    async def _goes_on(self) -> bool:
        """Whether the turn goes on: the agent did not pause, and nobody else changed a file."""
        turn = self._turn
        if turn is None:
            return False
        if turn.is_open:
            return True
        if time.monotonic() - self._last_action_time > self._pause_seconds:
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
            turn, is_of_turn, is_open = self._turn, self.work.is_of_turn, self._is_announced
            try:
                self._turn = await self._in_thread(
                    lambda: self.checkpoints.end(turn.id, is_of_turn, is_open=is_open)
                )
            except CheckpointError as problem:
                self._give_up(problem)
            if not is_open:
                self._stop_beating()
        self.on_settled()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, problem: CheckpointError) -> None:
        self._turn = None
        self.problem = str(problem)
        # What is too large stays so; a person's mark tries again.
        pause = math.inf if problem.is_lasting else RETRY_SECONDS
        self._retry_time = time.monotonic() + pause
        self._stop_beating()
        logger.warning("Turns of agents get no checkpoints now: %s", problem)

    def _is_given_up(self) -> bool:
        return bool(self.problem) and time.monotonic() < self._retry_time


def _may_change_files(action: Action) -> bool:
    if isinstance(action, FileEditAction):
        return action.command != "view"
    return isinstance(action, CmdRunAction | FileWriteAction | IPythonRunCellAction | MCPAction)
