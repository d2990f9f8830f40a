"""Steps of agents and persons around the changes of a workspace, and which Actions start turns."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Hashable
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import CheckpointError
from oh_jupyter.events import (
    Action,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
)

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoints
    from oh_jupyter.shell import ShellSession


def may_change_files(action: Action) -> bool:
    """Return whether an Action may change files, so that it belongs to a turn."""
    if isinstance(action, FileEditAction):
        return action.command != "view" and not action.dry_run
    return isinstance(action, CmdRunAction | FileWriteAction | IPythonRunCellAction | MCPAction)


logger = logging.getLogger(__name__)

ALIVE_SECONDS = 0.5
"""Interval at which a process with a step in progress records that it is alive."""


class AgentSteps:
    """The steps in progress, and the late work of processes that ended steps have started."""

    def __init__(
        self,
        in_thread: Callable[..., Awaitable[Any]],
        find_checkpoints: Callable[[], Checkpoints | None],
        notebook_file: Callable[[], str],
        on_late_work: Callable[[], None],
    ) -> None:
        """Begin no step yet.

        Args:
            in_thread: Calls a function in a thread.
            find_checkpoints: Returns the checkpoints of the workspace; None before their first use.
            notebook_file: Returns the path of the kernel's notebook, or "".
            on_late_work: Called when changes of ended steps' processes are recorded.
        """
        self._in_thread = in_thread
        self._find_checkpoints = find_checkpoints
        self._notebook_file = notebook_file
        self._on_late_work = on_late_work
        self._steps: dict[Hashable, int] = {}
        self._persons: set[Hashable] = set()
        self._unfinished: dict[Hashable, ShellSession] = {}
        self._events_fd: int | None = None
        self._is_looking = False
        self._alive_timer: asyncio.TimerHandle | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether an agent's Action or tool has not ended."""
        return any(key not in self._persons and isinstance(key, int | str) for key in self._steps)

    async def begin(
        self,
        key: Hashable,
        label: str,
        *,
        turn: int = 0,
        root: int = 0,
        is_persons: bool = False,
        waits: bool = False,
    ) -> None:
        """Begin a step; raise CheckpointError if the workspace cannot be read.

        With ``waits``, it changes nothing until ``start`` or its end.
        """
        checkpoints = self._find_checkpoints()
        if checkpoints is None or key in self._steps:
            return
        await self._end_finished_commands()
        if is_persons:
            self._persons.add(key)
        notebook = self._notebook_file()

        def begin() -> int:
            checkpoints.set_notebook(notebook)
            return checkpoints.begin_step(
                label, turn=turn, root=root, is_persons=is_persons, waits=waits
            )

        self._steps[key] = await self._in_thread(begin)
        self.follow_events()
        self._beat()

    async def start(self, key: Hashable) -> None:
        """Start a step that has waited."""
        checkpoints, step = self._find_checkpoints(), self._steps.get(key)
        if checkpoints is not None and step is not None:
            with contextlib.suppress(CheckpointError):  # its end reports that
                await self._in_thread(checkpoints.start_step, step)

    async def end(
        self,
        key: Hashable,
        paths: Collection[str] = (),
        *,
        root: int = 0,
        shell: int = 0,
        unfinished: ShellSession | None = None,
    ) -> bool:
        """End a step, if it is in progress; return whether it was.

        Args:
            key: The key that ``begin`` got.
            paths: Absolute paths that it reports to have changed.
            root: The process whose descendants did the work.
            shell: The shell that ran it.
            unfinished: The shell in which its command still runs, so that it ends later.
        """
        checkpoints = self._find_checkpoints()
        if checkpoints is None or key not in self._steps:
            return False
        if unfinished is not None:
            self._unfinished[key] = unfinished
            return True
        step = self._steps.pop(key)
        self._persons.discard(key)
        try:
            await self._in_thread(checkpoints.end_step, step, paths, root=root, shell=shell)
        except RuntimeError:  # at interpreter exit, pools accept no work
            checkpoints.end_step(step, paths, root=root, shell=shell)
        except CheckpointError as error:
            logger.warning("The changes of a step were not recorded: %s", error)
        except Exception:  # the Action itself is done
            logger.exception("The changes of a step were not recorded")
        self.follow_events()
        self._stop_beating()
        return True

    async def end_all(self) -> None:
        """End all steps."""
        self._unfinished.clear()
        for key in list(self._steps):
            await self.end(key)

    def close(self) -> None:
        """Follow no more events."""
        self._stop_beating(at_once=True)
        self._ignore_events()

    async def _end_finished_commands(self) -> None:
        """End the steps of commands that have ended without their Actions."""
        for key, shell in list(self._unfinished.items()):
            if not shell.running:
                del self._unfinished[key]
                await self.end(key, root=shell.guardian_pid, shell=shell.pid or 0)

    def follow_events(self) -> None:
        """Call back when files change while an agent is at work; else the system queues that."""
        checkpoints = self._find_checkpoints()
        fd = checkpoints.events_fd if checkpoints is not None and checkpoints.is_at_work else None
        if fd != self._events_fd:
            self._ignore_events()
        if fd is not None and self._events_fd is None:
            asyncio.get_running_loop().add_reader(fd, self._on_events)
            self._events_fd = fd

    def _ignore_events(self) -> None:
        if self._events_fd is not None:
            with contextlib.suppress(OSError, ValueError):  # a new watch has replaced it
                asyncio.get_running_loop().remove_reader(self._events_fd)
            self._events_fd = None

    def _on_events(self) -> None:
        checkpoints = self._find_checkpoints()
        changed = None if checkpoints is None else checkpoints.collect()
        if checkpoints is None or changed is None:  # another thread is reading them
            self._ignore_events()
            run_in_background(self._look())
        elif checkpoints.needs_look(changed) or any(
            not shell.running for shell in self._unfinished.values()
        ):
            run_in_background(self._look())

    async def _look(self) -> None:
        """Record what has changed until now."""
        checkpoints = self._find_checkpoints()
        if checkpoints is None or self._is_looking:
            return
        self._is_looking = True
        try:
            await self._end_finished_commands()
            if await self._in_thread(checkpoints.look):
                self._on_late_work()
        except CheckpointError as error:
            logger.warning("Changes beside an agent were not recorded: %s", error)
        finally:
            self._is_looking = False
            self.follow_events()

    def _beat(self) -> None:
        """Record periodically that this process is alive, while a step is in progress."""
        self._stop_beating(at_once=True)
        checkpoints = self._find_checkpoints()
        if checkpoints is not None and self._steps:
            checkpoints.beat()
            self._alive_timer = asyncio.get_running_loop().call_later(ALIVE_SECONDS, self._beat)

    def _stop_beating(self, *, at_once: bool = False) -> None:
        if self._alive_timer is not None and (at_once or not self._steps):
            self._alive_timer.cancel()
            self._alive_timer = None


def kernel_root() -> int:
    """Return the process whose descendants do the work of cells and tools."""
    return os.getpid()
