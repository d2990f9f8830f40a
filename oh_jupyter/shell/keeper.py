"""Keeping a bash at hand: start it, wait for it, and start another one when it has ended."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections.abc import Mapping
from typing import Literal

from oh_jupyter.errors import ChildStartError, ShellError
from oh_jupyter.shell import messages
from oh_jupyter.shell.bash import Bash
from oh_jupyter.shell.command import Command
from oh_jupyter.shell.environment import shell_environment
from oh_jupyter.shell.memory import MemoryGuard

__all__ = ["Outcome", "ShellKeeper"]

Outcome = Literal["done", "ended", "no_change", "hard"]
"""What a wait came to: command done, shell ended, nothing printed for long, time limit."""

CHECKS_AFTER_KEY = (0.05, 0.3)
"""Seconds after a control key at which to look whether bash is at its prompt."""
RECOVERY_TIME = 0.2
"""Seconds that bash gets to answer when it was found at its prompt at the end of a limit."""
START_TIMEOUT = 15.0
"""Seconds that bash and the user's start-up files get, before bash starts without the files."""


class ShellKeeper:
    """Holds the one bash of a session, and replaces it when it has ended.

    Attributes:
        bash: The bash that takes commands.
        cwd: Its working directory, as far as is known.
        exports: Variables that were set for all shells of the session.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work_dir: str,
        env: Mapping[str, str],
        user: str | None,
        max_memory_mb: int | None,
    ) -> None:
        self._loop = loop
        self._work_dir = work_dir
        self._env = env
        self._user = user
        self._max_memory_mb = max_memory_mb
        self._memory_guard: MemoryGuard | None = None
        self._retired: list[Bash] = []
        self._unset: dict[str, str] = {}
        self._restarted = False
        self._waiter: asyncio.Future[None] | None = None
        self.exports: dict[str, str] = {}
        self.cwd = work_dir
        self.bash: Bash

    async def start(self) -> None:
        """Start bash, with the user's start-up files if they let it come up.

        Raises:
            ShellError: bash does not start.
        """
        path = shutil.which("bash", path=self._env.get("PATH"))
        if path is None:
            raise ShellError("There is no bash on the PATH: install it.")
        if not os.path.isdir(self._work_dir):
            raise ShellError(f"There is no directory {self._work_dir} to start bash in: create it.")
        directory = self.cwd if os.path.isdir(self.cwd) else self._work_dir
        env = shell_environment({**self._env, **self.exports}, self._user)
        self._unset = {}
        for options in ([], ["--norc"]):
            bash = Bash(self._loop, self._on_change)
            try:
                ready = bash.start([path, *options, "-i"], directory, env, self._user)
            except ChildStartError as error:
                raise ShellError(f"bash does not start: {error}") from error
            self.bash = bash
            try:
                outcome = await self.wait(ready, hard=START_TIMEOUT)
            except asyncio.CancelledError:
                await bash.end()
                raise
            if outcome == "done" and ready.report is not None:
                bash.take_idle_output()
                self.cwd = ready.report.cwd
                return
            await bash.end()
        raise ShellError(f"{path} starts, but does not take commands: try it in a terminal.")

    async def restart(self) -> None:
        """Replace a bash that has ended; its background jobs live on until :meth:`close`.

        Raises:
            ShellError: bash does not start.
        """
        self._retired.append(self.bash)
        await self.start()
        self._restarted = True

    def run(self, text: str) -> Command:
        """Give bash a command; the one before must be done.

        Args:
            text: The command.

        Returns:
            The command.
        """
        exports, self._unset = self._unset, {}
        command = self.bash.run(text, exports)
        if self._max_memory_mb is not None:
            self._guard_memory(command, self._max_memory_mb * 1024**2)
        return command

    def press(self, key: str) -> Command:
        """Press a control key at the prompt.

        Args:
            key: The character that the key sends.

        Returns:
            A command that is done when the prompt is back.
        """
        exports, self._unset = self._unset, {}
        return self.bash.press_at_prompt(key, exports)

    def export(self, variables: Mapping[str, str]) -> None:
        """Set variables before the next command, and in every shell that follows.

        Args:
            variables: Names and values.
        """
        self.exports.update(variables)
        self._unset.update(variables)

    async def wait(
        self,
        command: Command,
        *,
        no_change: float | None = None,
        hard: float | None = None,
        key: bool = False,
    ) -> Outcome:
        """Wait until a command is done, or the shell has ended, or a limit is reached.

        Args:
            command: The command.
            no_change: Seconds without output, or None.
            hard: Seconds in all, or None or 0.
            key: A control key was pressed, so bash may be back at its prompt without a word.

        Returns:
            What came first.
        """
        begin = self._loop.time()
        hard_limit = begin + hard if hard else math.inf
        recovered = False
        checks = [begin + seconds for seconds in (CHECKS_AFTER_KEY if key else ())]
        while True:
            if command.done:
                return "done"
            if self.bash.exit_code is not None:
                return "ended"
            quiet_limit = max(begin, self.bash.last_change) + (no_change or math.inf)
            now = self._loop.time()
            if now >= min(quiet_limit, hard_limit):
                # The last chance of a bash that waits at its prompt without a word.
                if not recovered and self.bash.recover():
                    recovered = True
                    await self._wait_until(now + RECOVERY_TIME)
                    continue
                return "no_change" if now >= quiet_limit else "hard"
            while checks and now >= checks[0]:
                self.bash.recover()
                checks.pop(0)
            await self._wait_until(min(quiet_limit, hard_limit, *checks[:1]))

    async def close(self) -> None:
        """End every shell of the session, and everything that was started in them."""
        if self._memory_guard is not None:
            self._memory_guard.stop()
        await asyncio.gather(*(bash.end() for bash in (self.bash, *self._retired)))

    def notice(self, command: Command) -> str:
        """Say what happened besides: the shell was replaced, the command was killed.

        Args:
            command: The command that is reported on.

        Returns:
            What to add to the suffix; "" as a rule.
        """
        text = ""
        if command.memory_used is not None and self._max_memory_mb is not None:
            text += messages.memory_suffix(command.memory_used, self._max_memory_mb)
        if self._restarted:
            text += messages.restarted_suffix(self.cwd)
            self._restarted = False
        return text

    async def _wait_until(self, when: float) -> None:
        """Wait for the end of the command or of the shell, or until a time of the loop."""
        self._waiter = self._loop.create_future()
        timer = None if when == math.inf else self._loop.call_at(when, self._on_time)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _on_time(self) -> None:
        """Take in what has arrived, so that a limit is not reported for a command that is done."""
        self.bash.read_now()
        self._wake()

    def _on_change(self) -> None:
        command = self.bash.command
        if self.bash.exit_code is not None or (command is not None and command.done):
            if self._memory_guard is not None:
                self._memory_guard.stop()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _guard_memory(self, command: Command, limit: int) -> None:
        def on_kill(used: int) -> None:
            command.memory_used = used

        self._memory_guard = MemoryGuard(self._loop, self.bash.child, limit, on_kill)
