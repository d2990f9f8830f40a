"""ShellSession: the protocol's ``run`` action over one persistent shell, whichever it is."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

from oh_jupyter.background import LoopThread
from oh_jupyter.errors import ShellError
from oh_jupyter.events import CmdOutputObservation, CmdRunAction, ErrorObservation
from oh_jupyter.events.action import progress
from oh_jupyter.shell.driver import (
    INTERRUPT,
    Command,
    Dialect,
    Report,
    control_character,
    key_sequence,
)
from oh_jupyter.shell.environment import (
    ShellSnapshot,
    check_variables,
    no_change_timeout,
    read_variables,
)
from oh_jupyter.shell.replies import (
    NOTHING_TO_INTERACT_WITH,
    NOTHING_TO_RETRIEVE,
    completed_reply,
    hard_timeout_suffix,
    last_lines,
    leftover_prefix,
    multiple_commands,
    no_change_suffix,
    not_executed_suffix,
    open_here_document,
    sent_reply,
    unfinished_reply,
)
from oh_jupyter.shell.supervisor import ShellSupervisor

T = TypeVar("T")

SET_UP_SECONDS = 30.0
"""Seconds that the shell gets to tell its state, or to go back to one."""


class ShellSession:
    """A persistent shell that runs one command at a time.

    Use it from any thread with :meth:`execute`, or on one event loop, without any thread, with
    :meth:`execute_async`. A ``with`` block starts and closes it.

    Attributes:
        dialect: What is special about the shell; a subclass sets it.
        work_dir: Directory in which the shell starts.
        username: User that the shell runs as; None for ours.
        NO_CHANGE_TIMEOUT_SECONDS: Seconds without output after which a command that is not
            ``blocking`` is reported as still running (the name is OpenHands').
        max_memory_mb: Memory in MiB that the processes of a command may use together, or None.
    """

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        work_dir: str | os.PathLike[str],
        username: str | None = None,
        no_change_timeout_seconds: float | None = None,
        max_memory_mb: int | None = None,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        env: Mapping[str, str] | None = None,
        path_directory: str | None = None,
    ) -> None:
        """Describe a session; :meth:`initialize` starts it.

        Args:
            work_dir: Directory in which the shell starts.
            username: User to run as; another one than ours needs root.
            no_change_timeout_seconds: See above; None for the environment variable
                NO_CHANGE_TIMEOUT_SECONDS, or 10.
            max_memory_mb: See above.
            loop: Running event loop to work on; None for a private one in a thread.
            env: The environment to start from; None for a copy of ours.
            path_directory: Directory that comes first on the shell's PATH, whatever the user's
                start-up files put there; None for none.

        Raises:
            ConfigError: NO_CHANGE_TIMEOUT_SECONDS is not a positive number.
        """
        self.work_dir = os.path.abspath(work_dir)
        self.username = username
        self.NO_CHANGE_TIMEOUT_SECONDS = no_change_timeout(no_change_timeout_seconds)
        self.max_memory_mb = max_memory_mb
        self._env = dict(os.environ if env is None else env)
        self._path_directory = path_directory
        self._loop = loop
        self._thread: LoopThread | None = None
        self._supervisor: ShellSupervisor | None = None
        self._command: Command | None = None  # The one that was reported as unfinished.
        self._lock = asyncio.Lock()
        self._progress = progress.get()

    @property
    def cwd(self) -> str:
        """The shell's working directory, as of the last completed command."""
        return self.work_dir if self._supervisor is None else self._supervisor.cwd

    @property
    def pid(self) -> int | None:
        """Process id of the shell, or None if the session is not initialized."""
        return None if self._supervisor is None else self._supervisor.shell.child.pid

    @property
    def running(self) -> bool:
        """Whether a command is running, also one whose observation was already given."""
        return self._supervisor is not None and self._supervisor.shell.running

    # The blocking face

    def initialize(self) -> None:
        """Start the shell; see :meth:`initialize_async`."""
        if self._loop is None:
            self._thread = LoopThread("oh_jupyter-shell")
            self._loop = self._thread.loop
        try:
            self._call(self.initialize_async())
        except BaseException:
            self.close()
            raise

    def execute(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Run an action from any thread but the loop's own; see :meth:`execute_async`."""
        return self._call(self.execute_async(action))

    def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables; see :meth:`set_env_async`."""
        self._call(self.set_env_async(variables))

    def snapshot(self) -> ShellSnapshot:
        """Tell directory and exported variables; see :meth:`snapshot_async`."""
        return self._call(self.snapshot_async())

    def restore(self, snapshot: ShellSnapshot) -> None:
        """Go back to a directory and to exported variables; see :meth:`restore_async`."""
        self._call(self.restore_async(snapshot))

    def interrupt(self) -> None:
        """Press Ctrl-C in the running command, also while :meth:`execute` waits elsewhere."""
        if self._loop is not None and self._supervisor is not None:
            self._loop.call_soon_threadsafe(self._supervisor.shell.press, INTERRUPT)

    def close(self) -> None:
        """End the shell and everything that was started in it. May be called twice."""
        if self._supervisor is not None:
            self._call(self.close_async())
        if self._thread is not None:
            self._thread.stop()
            self._thread = self._loop = None

    def __enter__(self) -> Self:
        self.initialize()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the session's loop from another thread (ShellError)."""
        loop = self._loop
        if loop is None or loop.is_closed() or (self._thread is None and not loop.is_running()):
            coroutine.close()
            raise ShellError(
                "The shell session is not running: call initialize() first, and keep its event "
                "loop running."
            )
        if asyncio._get_running_loop() is loop:
            coroutine.close()
            raise ShellError(
                "This would block the event loop that the shell works on: "
                "await the method whose name ends in _async instead."
            )
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    # The asyncio face

    def peek(self, max_lines: int = 3) -> str:
        """The last lines of the command that runs, which stay there; on the session's loop."""
        return last_lines(self._command, max_lines)

    async def initialize_async(self) -> None:
        """Start the shell on the running loop.

        Raises:
            ShellError: The shell does not start.
        """
        if self._supervisor is not None:
            return
        self._loop = asyncio.get_running_loop()
        supervisor = ShellSupervisor(
            self.dialect,
            self._loop,
            self.work_dir,
            self._env,
            self.username,
            self.max_memory_mb,
            self._path_directory,
            lambda: self._progress.put_out(),
        )
        await supervisor.start()
        self._supervisor = supervisor

    async def close_async(self) -> None:
        """End the shell and everything that was started in it."""
        supervisor, self._supervisor, self._command = self._supervisor, None, None
        if supervisor is not None:
            await supervisor.close()

    async def set_env_async(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in the running shell, and in those that may follow it.

        While a command runs they are kept, and set before the next one.

        Args:
            variables: Names and values; values are taken literally.

        Raises:
            ShellError: A name or value cannot be that of an environment variable.
        """
        check_variables(variables)
        async with self._lock:
            supervisor = self._open()
            supervisor.export(variables)
            if not self.running and variables:
                await supervisor.wait(supervisor.run(""))

    async def snapshot_async(self) -> ShellSnapshot:
        """Tell where the shell is and what it exports, without a trace in it.

        Returns:
            What :meth:`restore_async` takes.

        Raises:
            ShellError: A command runs, or the shell cannot tell.
        """
        async with self._lock:
            return await self._snapshot()

    async def _snapshot(self) -> ShellSnapshot:
        if self.dialect.write_variables is None:
            raise ShellError(f"{self.dialect.name} cannot tell its variables.")
        try:
            descriptor, file = tempfile.mkstemp(prefix="oh_shell_")
        except OSError as error:
            raise ShellError(f"The shell's variables cannot be read: {error}") from error
        os.close(descriptor)
        try:
            if self.username is not None:
                shutil.chown(file, self.username)
            report = await self._set_up(self.dialect.write_variables(file))
            variables = read_variables(file)
        finally:
            os.unlink(file)
        return ShellSnapshot(report.cwd, variables)

    async def restore_async(self, snapshot: ShellSnapshot) -> None:
        """Go back to a directory and to exported variables; those exported since are removed.

        What is no exported variable stays: functions, aliases, variables of the shell alone.

        Args:
            snapshot: What :meth:`snapshot_async` has told, here or in another session.

        Raises:
            ShellError: A command runs, the directory is gone, or a variable is read-only.
        """
        check_variables(snapshot.variables)
        async with self._lock:
            now = (await self._snapshot()).variables
            changed = {n: v for n, v in snapshot.variables.items() if now.get(n) != v}
            removed = now.keys() - snapshot.variables.keys()
            assert self.dialect.go_back is not None
            supervisor = self._open()
            supervisor.forget(removed)
            supervisor.export(changed)
            report = await self._set_up(self.dialect.go_back(snapshot.cwd, removed))
            if not os.path.isdir(snapshot.cwd) or not os.path.samefile(report.cwd, snapshot.cwd):
                raise ShellError(
                    f"The shell cannot go back to {snapshot.cwd}; it is in {report.cwd}."
                )
            left = (await self._snapshot()).variables
            kept = sorted(
                name
                for name in left.keys() | snapshot.variables.keys()
                if left.get(name) != snapshot.variables.get(name)
            )
        if kept:
            raise ShellError(f"These variables could not be set back: {', '.join(kept)}.")

    async def _set_up(self, lines: str) -> Report:
        supervisor = self._open()
        if self.running:
            raise ShellError("A command runs in the shell: wait until it has ended.")
        if supervisor.shell.exit_code is not None:
            await supervisor.restart()
        command = supervisor.run("", lines)
        outcome = await supervisor.wait(command, hard=SET_UP_SECONDS)
        if outcome != "done" or command.report is None:
            raise ShellError("The shell does not answer: interrupt or end what runs in it.")
        supervisor.cwd = command.report.cwd
        return command.report

    async def execute_async(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Run an action on the session's loop.

        One action at a time; a second one waits until the first has its observation, unless it is
        input for the command that runs: that is typed at once, and what comes of it is told by the
        first. When the task is cancelled, Ctrl-C is pressed in the command that it has started.

        Args:
            action: The command, input or control key, with its limits.

        Returns:
            A ``run`` observation; exit code -1 says that the command is still running or that
            nothing was done. An ``error`` observation for several commands at once, or when a
            shell cannot be started.

        Raises:
            ShellError: The session is not initialized, or is closed.
        """
        self._open()
        text = action.command.strip()
        if "\0" in text:
            return ErrorObservation("ERROR: The command contains a NUL character; remove it.")
        try:
            if action.is_static:
                progress.get().begin()
                return await self._execute_static(action)
            if action.is_input and text and self._lock.locked() and self.running:
                self._type(action.command)
                return sent_reply(text)
            async with self._lock:
                self._progress = progress.get()
                self._progress.begin()
                return await self._execute(action)
        except ShellError as error:
            if self._supervisor is None:
                raise
            return ErrorObservation(f"ERROR: {error}")

    def _open(self) -> ShellSupervisor:
        """Return the supervisor of a session that is initialized."""
        if self._supervisor is None:
            raise ShellError("The shell session is not running: call initialize() first.")
        return self._supervisor

    async def _execute_static(
        self, action: CmdRunAction
    ) -> CmdOutputObservation | ErrorObservation:
        """Run a command in a shell of its own that is thrown away."""
        directory = os.path.join(self.work_dir, action.cwd or "")
        if not os.path.isdir(directory):
            return ErrorObservation(f"ERROR: There is no directory {directory} to run in.")
        session = type(self)(
            directory,
            self.username,
            self.NO_CHANGE_TIMEOUT_SECONDS,
            self.max_memory_mb,
            env={**self._env, **self._open().exports},
            path_directory=self._path_directory,
        )
        await session.initialize_async()
        try:
            return await session._execute(replace(action, is_static=False))
        finally:
            await session.close_async()

    async def _execute(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Decide what an action means now, in the protocol's order."""
        supervisor = self._open()
        text = action.command.strip()
        key = control_character(text)
        earlier = self._command
        await supervisor.settle(earlier)
        if earlier is None and not text:
            return CmdOutputObservation(NOTHING_TO_RETRIEVE)
        if earlier is None and action.is_input:
            return CmdOutputObservation(NOTHING_TO_INTERACT_WITH)
        if not action.is_input and (error := self._refuse(text)):
            return ErrorObservation(error)
        if earlier is None or (earlier.done and text and not action.is_input):
            return await self._run(action, text, key, earlier)
        if not earlier.done and text and not action.is_input:
            suffix = not_executed_suffix(text)
            return unfinished_reply(earlier, text, suffix, action.hidden)
        if text and earlier.done:
            earlier.dropped_input = True
        elif text:
            self._type(action.command)
        return await self._reply(action, earlier, text, text if key else None)

    def _refuse(self, text: str) -> str:
        """Explain why a command cannot be run as it stands; "" if it can."""
        commands = self.dialect.split(text)
        if len(commands) > 1:
            return multiple_commands(commands)
        end = self.dialect.open_here_document(text)
        return open_here_document(end) if end else ""

    def _type(self, text: str) -> None:
        """Send input as it is and the Enter key, or press the key that it names."""
        shell, key = self._open().shell, key_sequence(text.strip())
        shell.type_line(text) if key is None else shell.press(key)

    async def _run(
        self, action: CmdRunAction, text: str, key: str | None, earlier: Command | None
    ) -> CmdOutputObservation | ErrorObservation:
        """Give the shell a new command, or press a key at its prompt."""
        supervisor = self._open()
        if supervisor.shell.exit_code is not None:
            await supervisor.restart()
        command = supervisor.run(text) if key is None else supervisor.press(key)
        self._command = command
        shown = self.dialect.displayed(text)
        waiting = self._reply(action, command, shown, text if key else None)
        reply = await supervisor.interrupted_if_cancelled(command, waiting)
        if isinstance(reply, ErrorObservation):
            self._command = earlier
        elif earlier is not None:
            reply.metadata.prefix = leftover_prefix(earlier) + reply.metadata.prefix
        return reply

    async def _reply(
        self, action: CmdRunAction, command: Command, shown: str, key: str | None
    ) -> CmdOutputObservation | ErrorObservation:
        """Wait for what comes first, the end or a limit, and report it."""
        supervisor = self._open()
        no_change = None if action.blocking else self.NO_CHANGE_TIMEOUT_SECONDS
        outcome = await supervisor.wait(
            command, no_change=no_change, hard=action.timeout, key=key is not None
        )
        if outcome == "ended" and not command.started and key is None:
            # The shell had ended before, and nothing of the command was run.
            return await self._run(action, command.text, None, None)
        if outcome == "no_change":
            suffix = no_change_suffix(self.NO_CHANGE_TIMEOUT_SECONDS)
            return unfinished_reply(command, shown, suffix, action.hidden)
        if outcome == "hard":
            suffix = hard_timeout_suffix(action.timeout or 0.0)
            return unfinished_reply(command, shown, suffix, action.hidden)
        self._command = None
        report = command.report
        if outcome == "ended" or report is None:
            status = supervisor.shell.exit_code or 0
            path = self._env.get("PATH", "")
            await supervisor.restart()
            report = Report(command.id, status, -1, path, supervisor.cwd)
        supervisor.cwd = report.cwd
        if report.refused:
            return ErrorObservation(multiple_commands(list(report.refused)))
        reply = completed_reply(
            command, report, shown, username=self.username, key=key, hidden=action.hidden
        )
        reply.metadata.suffix += supervisor.notices(command)
        return reply
