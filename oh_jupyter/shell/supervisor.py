"""Supervision of a shell: start it, wait for commands, and replace it when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal, TypeVar

from oh_jupyter.errors import ChildStartError, SandboxError, ShellError
from oh_jupyter.process import Child
from oh_jupyter.shell.driver import (
    INTERRUPT,
    Command,
    Dialect,
    Enclosure,
    Launch,
    ShellDriver,
)
from oh_jupyter.shell.environment import shell_environment
from oh_jupyter.shell.replies import memory_suffix, restarted_suffix, skipped_startup_suffix

CHECK_INTERVAL_SECONDS = 0.5
"""Seconds between two checks of the memory usage."""


class MemoryGuard:
    """Kills the processes of a shell when their total memory exceeds a limit."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        child: Child,
        shell_pid: int,
        limit: int,
        on_kill: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._child = child
        self._shell_pid = shell_pid
        self._limit = limit
        self._on_kill = on_kill
        self._timer = loop.call_later(CHECK_INTERVAL_SECONDS, self._check)

    def stop(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _check(self) -> None:
        used = self._child.memory_bytes()
        if used > self._limit:
            self._kill()
            self._on_kill(used)
        self._timer = self._loop.call_later(CHECK_INTERVAL_SECONDS, self._check)

    def _kill(self) -> None:
        """Kill the shell's descendants, and the shell itself only if it exceeds the limit alone."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            shell = psutil.Process(self._shell_pid)
            processes = shell.children(recursive=True)
            if shell.memory_info().rss > self._limit:
                processes.append(shell)
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    process.kill()


T = TypeVar("T")

Outcome = Literal["done", "ended", "no_change", "hard"]
"""Outcome of a wait: command done, shell ended, no new output, or hard time limit."""

KEY_CHECKS_SECONDS = (0.05, 0.3)
"""Delays after a control key before checking whether the shell is at its prompt."""
RECOVERY_SECONDS = 2.0
"""Time for a report from a shell that is found at its prompt when a limit is reached."""
INTERRUPT_SECONDS = 2.0
"""Time for a cancelled command to end before it counts as still running."""
START_TIMEOUT_SECONDS = 15.0
"""Time limit for the user's start-up files, before the shell is started without them."""
LAST_START_TIMEOUT_SECONDS = 60.0
"""Time limit without these files; a busy machine needs long for a bash alone."""
MAX_BOX_STARTS = 3
"""Attempts to start a sandbox; one fails if a file that it hides, or a mount, changes meanwhile."""


class ShellSupervisor:
    """Owns the shell of a session, and replaces it when it has ended."""

    def __init__(
        self,
        dialect: Dialect,
        loop: asyncio.AbstractEventLoop,
        work_dir: str,
        env: Mapping[str, str],
        user: str | None,
        max_memory_mb: int | None,
        path_directory: str | None,
        on_output: Callable[[], object],
        enclosure: Enclosure | None = None,
    ) -> None:
        self._on_output = on_output
        self._enclosure = enclosure
        self._dialect = dialect
        self._loop = loop
        self._work_dir = work_dir
        self._env = env
        self._user = user
        self._max_memory_mb = max_memory_mb
        self._path_directory = path_directory
        self._memory_guard: MemoryGuard | None = None
        self._retired: list[ShellDriver] = []
        self._pending_exports: dict[str, str] = {}
        self._restarted = False
        self._startup_fault = ""  # why the start-up files were skipped
        self._waiter: asyncio.Future[None] | None = None
        self.exports: dict[str, str] = {}
        self.cwd = work_dir
        self.shell: ShellDriver

    async def start(self) -> None:
        """Start the shell, without the user's start-up files if it hangs with them."""
        name = self._dialect.name
        command_lines = self._dialect.command_lines(self._env.get("PATH"))
        if not command_lines:
            raise ShellError(f"There is no {name} on the PATH: install it.")
        if not self.is_directory(self._work_dir):
            raise ShellError(
                f"{name} cannot start: there is no directory {self._work_dir}; create it."
            )
        self._pending_exports = {}
        for argv in command_lines:
            is_last = argv is command_lines[-1]
            limit = LAST_START_TIMEOUT_SECONDS if is_last else START_TIMEOUT_SECONDS
            for attempt in range(1 if self._enclosure is None else MAX_BOX_STARTS):
                try:
                    outcome = await self._start(argv, limit)
                except SandboxError:  # mounts or links have changed meanwhile
                    if attempt == MAX_BOX_STARTS - 1:
                        raise
                    continue
                if outcome == "done":
                    return
                if outcome != "ended":
                    break
        raise ShellError(
            f"{command_lines[-1][0]} starts but accepts no commands: try it in a terminal."
        )

    async def _start(self, argv: list[str], limit: float) -> Outcome:
        """Start the shell by a command line; if that does not succeed, end it."""
        directory = self.cwd if self.is_directory(self.cwd) else self._work_dir
        env = shell_environment({**self._env, **self.exports}, self._dialect.variables, self._user)
        shell = self._dialect.driver(self._loop, self._on_change)
        launch = Launch(argv, directory, env, self._user, self._path_directory, self._enclosure)
        try:
            ready = shell.start(launch)
        except ChildStartError as error:
            raise ShellError(f"{self._dialect.name} cannot be started: {error}") from error
        self.shell = shell
        try:
            outcome = await self.wait(ready, hard=limit)
            if outcome == "done" and self._enclosure is not None:
                self._enclosure.check(shell.pid)
            if outcome == "done" and (program := shell.relaying_program()):
                # Such as tmux, which passes on only what fits on its screen.
                self._startup_fault = f"start {program}, through which output would be lost"
                outcome = "hard"
            elif outcome == "hard":
                self._startup_fault = f"took more than {limit:g} s"
        except (asyncio.CancelledError, ShellError):
            await shell.end()
            raise
        if outcome == "done" and ready.report is not None:
            shell.take_idle_output()
            self.cwd = ready.report.cwd
        else:
            await shell.end()
        return outcome

    def is_directory(self, path: str) -> bool:
        """Return whether the shell sees a directory at a path."""
        outside = path if self._enclosure is None else self._enclosure.outside(path)
        return outside is not None and os.path.isdir(outside)

    def is_same(self, path: str, other: str) -> bool:
        """Return whether the shell sees the same directory at two paths."""
        if self._enclosure is None:
            return os.path.samefile(path, other)
        first, second = self._enclosure.outside(path), self._enclosure.outside(other)
        return first is not None and second is not None and os.path.samefile(first, second)

    async def restart(self) -> None:
        """Replace a shell that has ended; its background jobs continue until :meth:`close`."""
        self._retired.append(self.shell)
        await self.start()
        self._restarted = True

    def run(
        self,
        text: str,
        setup: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        script: bool = False,
    ) -> Command:
        """Run a command, with environment variables only for it; the previous must be done."""
        exports, self._pending_exports = self._pending_exports, {}
        command = self.shell.run(text, exports, setup=setup, variables=variables, script=script)
        if self._max_memory_mb is not None:
            self._guard_memory(command, self._max_memory_mb * 1024**2)
        return command

    def press(self, key: str) -> Command:
        """Press a control key at the prompt."""
        exports, self._pending_exports = self._pending_exports, {}
        return self.shell.press_at_prompt(key, exports)

    def export(self, variables: Mapping[str, str]) -> None:
        """Set variables before the next command, and in every replacement shell."""
        self.exports.update(variables)
        self._pending_exports.update(variables)

    def forget(self, names: Iterable[str]) -> None:
        """Stop setting variables in replacement shells."""
        for name in names:
            self.exports.pop(name, None)
            self._pending_exports.pop(name, None)

    async def wait(
        self,
        command: Command,
        *,
        no_change: float | None = None,
        hard: float | None = None,
        key: bool = False,
    ) -> Outcome:
        """Wait until a command is done, the shell has ended, or a limit in seconds is reached."""
        begin = self._loop.time()
        hard_limit = begin + hard if hard else math.inf
        recovered = False
        checks = [begin + seconds for seconds in (KEY_CHECKS_SECONDS if key else ())]
        while True:
            if command.done:
                return "done"
            if self.shell.exit_code is not None:
                return "ended"
            quiet_limit = max(begin, self.shell.last_change) + (no_change or math.inf)
            now = self._loop.time()
            if now >= min(quiet_limit, hard_limit):
                # The shell may be waiting at its prompt without a report.
                if not recovered and self.shell.recover():
                    recovered = True
                    await self._wait_until(now + RECOVERY_SECONDS)
                    continue
                return "no_change" if now >= quiet_limit else "hard"
            while checks and now >= checks[0]:
                self.shell.recover()
                checks.pop(0)
            await self._wait_until(min(quiet_limit, hard_limit, *checks[:1]))

    async def interrupt_if_cancelled(self, command: Command, reply: Awaitable[T]) -> T:
        """Await the reply to a command; interrupt the command if the wait is cancelled."""
        try:
            return await reply
        except asyncio.CancelledError:
            if not command.done and self.shell.exit_code is None:
                command.cancelled = True
                self.shell.press(INTERRUPT)
            raise

    async def settle(self, earlier: Command | None) -> None:
        """Read pending output, and wait for the end of a cancelled command."""
        self.shell.read_now()
        if earlier is not None and earlier.cancelled:
            await self.wait(earlier, hard=INTERRUPT_SECONDS, key=True)

    async def close(self) -> None:
        """Stop every shell of the session, and all their processes."""
        if self._memory_guard is not None:
            self._memory_guard.stop()
        await asyncio.gather(*(shell.end() for shell in (self.shell, *self._retired)))

    def notices(self, command: Command) -> str:
        """Return notices for the suffix if the command was killed or the shell was replaced."""
        text = ""
        if command.killed_at_bytes is not None and self._max_memory_mb is not None:
            text += memory_suffix(command.killed_at_bytes, self._max_memory_mb)
        if self._restarted:
            text += restarted_suffix(self.cwd)
            self._restarted = False
        if self._startup_fault:
            text += skipped_startup_suffix(self._startup_fault)
            self._startup_fault = ""
        return text

    async def _wait_until(self, when: float) -> None:
        """Wait until the command or the shell ends, or until a time of the loop."""
        self._waiter = self._loop.create_future()
        timer = None if when == math.inf else self._loop.call_at(when, self._on_timeout)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _on_timeout(self) -> None:
        """Read pending output first, so that no limit is reported for a finished command."""
        self.shell.read_now()
        self._wake()

    def _on_change(self) -> None:
        self._on_output()
        command = self.shell.command
        if self.shell.exit_code is not None or (command is not None and command.done):
            if self._memory_guard is not None:
                self._memory_guard.stop()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _guard_memory(self, command: Command, limit: int) -> None:
        def on_kill(used: int) -> None:
            command.killed_at_bytes = used

        self._memory_guard = MemoryGuard(
            self._loop, self.shell.child, self.shell.pid, limit, on_kill
        )
