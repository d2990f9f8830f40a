"""ShellSession: the protocol's ``run`` action over one persistent shell."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

from oh_jupyter.background import LoopThread, threads_have_ended
from oh_jupyter.errors import ShellError
from oh_jupyter.events import CmdOutputObservation, CmdRunAction, ErrorObservation
from oh_jupyter.events.action import progress
from oh_jupyter.shell.driver import (
    INTERRUPT,
    Command,
    Dialect,
    Enclosure,
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
    ended_static_suffix,
    full_screen_suffix,
    hard_timeout_suffix,
    last_lines,
    leftover_prefix,
    multiple_commands,
    no_change_suffix,
    not_executed_suffix,
    nothing_runs,
    open_here_document,
    running_suffix,
    sent_reply,
    unfinished_reply,
)
from oh_jupyter.shell.shared_file import SharedFile
from oh_jupyter.shell.supervisor import ShellSupervisor
from oh_jupyter.trace_context import trace_variables

T = TypeVar("T")

LONG_COMMAND_CHARS = 100_000
"""Length from which a command is parsed in a thread."""

SET_UP_SECONDS = 30.0
"""Timeout for reading or restoring the shell's state."""


class ShellSession:
    """A persistent shell that runs one command at a time.

    Call :meth:`execute` from any thread, or await :meth:`execute_async` on one event loop
    without threads. A ``with`` block starts and closes it.

    Attributes:
        dialect: Properties of the shell; set by a subclass.
        work_dir: Directory in which the shell starts.
        username: User that the shell runs as; None for the current user.
        NO_CHANGE_TIMEOUT_SECONDS: Seconds without output after which a command that is not
            ``blocking`` is reported as still running (the name is OpenHands').
        max_memory_mb: Memory limit in MiB for all processes of a command, or None.
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
        enclosure: Enclosure | None = None,
        keep_output: Callable[[str], str] | None = None,
    ) -> None:
        """Prepare a session; :meth:`initialize` starts it.

        Args:
            work_dir: Directory in which the shell starts.
            username: User to run as; a different user requires root.
            no_change_timeout_seconds: See above; None for the environment variable
                NO_CHANGE_TIMEOUT_SECONDS, or 10.
            max_memory_mb: See above.
            loop: Running event loop to use; None for a private one in a thread.
            env: Base environment; None for a copy of the process environment.
            path_directory: Directory to put first on the shell's PATH, after the user's
                start-up files have run; or None.
            enclosure: Sandbox for all processes of the shell; its owner closes it after the
                session. None for no sandbox.
            keep_output: Stores the long output of a command with ``keep_output`` in a file, and
                returns its path; None to store none.

        Raises:
            ConfigError: NO_CHANGE_TIMEOUT_SECONDS is not a positive number.
        """
        self.work_dir = os.path.abspath(work_dir)
        self.username = username
        self.NO_CHANGE_TIMEOUT_SECONDS = no_change_timeout(no_change_timeout_seconds)
        self.max_memory_mb = max_memory_mb
        self._env = dict(os.environ if env is None else env)
        self._path_directory = path_directory
        self._enclosure = enclosure
        self._keep_output = keep_output
        self._loop = loop
        self._thread: LoopThread | None = None
        self._supervisor: ShellSupervisor | None = None
        self._command: Command | None = None  # the one reported as unfinished
        self._lock = asyncio.Lock()
        self._progress = progress.get()

    @property
    def cwd(self) -> str:
        """The shell's working directory after the last completed command."""
        return self.work_dir if self._supervisor is None else self._supervisor.cwd

    @property
    def pid(self) -> int | None:
        """Process id of the shell, or None if the session is not initialized."""
        return None if self._supervisor is None else self._supervisor.shell.pid

    @property
    def guardian_pid(self) -> int:
        """Process id above the shell and everything that it starts; 0 if it has not started."""
        return 0 if self._supervisor is None else self._supervisor.shell.child.guardian_pid

    @property
    def running(self) -> bool:
        """True while a command is running, including one reported as unfinished."""
        return self._supervisor is not None and self._supervisor.shell.running

    # Blocking interface

    def initialize(self) -> None:
        """Start the shell; see :meth:`initialize_async`."""
        if threads_have_ended():
            raise ShellError("The shell cannot be started: Python is exiting.")
        if self._loop is None:
            self._thread = LoopThread("oh-shell-loop")
            self._loop = self._thread.loop
        try:
            self._call(self.initialize_async())
        except BaseException:
            self.close()
            raise

    def execute(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Run an action from any thread except the loop's; see :meth:`execute_async`."""
        return self._call(self.execute_async(action))

    def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables; see :meth:`set_env_async`."""
        self._call(self.set_env_async(variables))

    def snapshot(self) -> ShellSnapshot:
        """Return directory and exported variables; see :meth:`snapshot_async`."""
        return self._call(self.snapshot_async())

    def restore(self, snapshot: ShellSnapshot) -> None:
        """Restore directory and exported variables; see :meth:`restore_async`."""
        self._call(self.restore_async(snapshot))

    def interrupt(self, before: float = math.inf) -> None:
        """Press Ctrl-C in the running command, even while another thread executes it.

        Args:
            before: Time of the monotonic clock; a command that began later is spared.
        """
        if self._loop is not None and self._supervisor is not None:
            self._loop.call_soon_threadsafe(self.interrupt_now, before)

    def interrupt_now(self, before: float = math.inf) -> bool:
        """Interrupt on the session's loop; return False if the running command began later."""
        shell = None if self._supervisor is None else self._supervisor.shell
        if shell is None or shell.command is None or not shell.running:
            return True
        if shell.command.began > before:
            return False
        shell.press(INTERRUPT)
        return True

    def close(self) -> None:
        """Stop the shell and all its processes; further calls do nothing.

        When Python is past its exit handlers, they end with this process.
        """
        if threads_have_ended():
            self._supervisor = self._command = None
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
        """Run a coroutine on the session's loop from another thread; may raise ShellError."""
        loop = self._loop
        if threads_have_ended():
            coroutine.close()
            raise ShellError("The shell session is not running: Python is exiting.")
        if loop is None or loop.is_closed() or (self._thread is None and not loop.is_running()):
            coroutine.close()
            raise ShellError(
                "The shell session is not running: call initialize() first, and keep its event "
                "loop running."
            )
        if asyncio._get_running_loop() is loop:
            coroutine.close()
            raise ShellError(
                "This call would block the shell's own event loop: "
                "await the method with the suffix _async instead."
            )
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    # asyncio interface

    def peek(self, max_lines: int = 3) -> str:
        """Return the last lines of the running command without consuming them."""
        return last_lines(self._command, max_lines)

    async def initialize_async(self) -> None:
        """Start the shell on the running loop.

        Raises:
            ShellError: The shell cannot be started.
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
            self._enclosure,
        )
        await supervisor.start()
        self._supervisor = supervisor

    async def close_async(self) -> None:
        """Stop the shell and all its processes."""
        supervisor, self._supervisor, self._command = self._supervisor, None, None
        if supervisor is not None:
            await supervisor.close()

    async def set_env_async(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in the shell, and in a later replacement of it.

        While a command runs, they are queued and set before the next one.

        Args:
            variables: Values by name; they are taken literally.

        Raises:
            ShellError: A name or value is invalid.
        """
        check_variables(variables)
        async with self._lock:
            supervisor = self._open()
            supervisor.export(variables)
            if not self.running and variables:
                await supervisor.wait(supervisor.run(""))

    async def snapshot_async(self) -> ShellSnapshot:
        """Return the shell's directory and exported variables, without side effects.

        Returns:
            A snapshot for :meth:`restore_async`.

        Raises:
            ShellError: A command is running, or the shell cannot report its variables.
        """
        async with self._lock:
            return await self._snapshot()

    async def _snapshot(self) -> ShellSnapshot:
        if self.dialect.write_variables is None:
            raise ShellError(f"{self.dialect.name} cannot report its variables.")
        try:
            file = SharedFile(self._enclosure, self.username)
        except OSError as error:
            raise ShellError(f"The shell's variables cannot be read: {error}") from error
        try:
            report = await self._run_setup(self.dialect.write_variables(file.path_inside))
            folder = None if self._enclosure is None else self._enclosure.temporary_dir
            variables = read_variables(file.descriptor, folder or tempfile.gettempdir())
        finally:
            file.remove()
        return ShellSnapshot(report.cwd, variables)

    async def restore_async(self, snapshot: ShellSnapshot) -> None:
        """Restore the directory and the exported variables, and remove variables exported since.

        Functions, aliases and unexported variables do not change.

        Args:
            snapshot: Result of :meth:`snapshot_async`, from this or another session.

        Raises:
            ShellError: A command is running, the directory is gone, or a variable is read-only.
        """
        check_variables(snapshot.variables)
        async with self._lock:
            current = (await self._snapshot()).variables
            changed = {n: v for n, v in snapshot.variables.items() if current.get(n) != v}
            removed = current.keys() - snapshot.variables.keys()
            assert self.dialect.restore is not None
            supervisor = self._open()
            supervisor.forget(removed)
            supervisor.export(changed)
            report = await self._run_setup(self.dialect.restore(snapshot.cwd, removed))
            if not supervisor.is_directory(snapshot.cwd) or not supervisor.is_same(
                report.cwd, snapshot.cwd
            ):
                raise ShellError(
                    f"The shell cannot go back to {snapshot.cwd}; it is in {report.cwd}."
                )
            current = (await self._snapshot()).variables
            different = sorted(
                name
                for name in current.keys() | snapshot.variables.keys()
                if current.get(name) != snapshot.variables.get(name)
            )
        if different:
            raise ShellError(f"These variables could not be restored: {', '.join(different)}.")

    async def _run_setup(self, lines: str) -> Report:
        supervisor = self._open()
        if self.running:
            raise ShellError("A command is running in the shell: wait until it has ended.")
        if supervisor.shell.exit_code is not None:
            await supervisor.restart()
        command = supervisor.run("", lines)
        outcome = await supervisor.wait(command, hard=SET_UP_SECONDS)
        if outcome != "done" or command.report is None:
            raise ShellError("The shell does not respond: interrupt the program running in it.")
        supervisor.cwd = command.report.cwd
        return command.report

    async def execute_async(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Run an action on the session's loop.

        Actions run one at a time. Input for the running command is typed at once, and the
        command's own action reports the output. Cancelling the task presses Ctrl-C in the
        command that it has started.

        Args:
            action: The command, input or control key, with its limits.

        Returns:
            A ``run`` observation; exit code -1 means that the command is still running or that
            nothing was done. An ``error`` observation for several commands at once, or if a
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
                await progress.get().prepare()
                progress.get().begin()
                return await self._execute_static(action)
            if action.is_input and text and self._lock.locked() and self.running:
                self._type(action.command)
                return sent_reply(text)
            async with self._lock:
                self._progress = progress.get()
                await self._progress.prepare()
                self._progress.begin()
                return await self._execute(action)
        except ShellError as error:
            if self._supervisor is None:
                raise
            return ErrorObservation(f"ERROR: {error}")

    def _open(self) -> ShellSupervisor:
        """Return the supervisor of an initialized session."""
        if self._supervisor is None:
            raise ShellError("The shell session is not running: call initialize() first.")
        return self._supervisor

    async def _execute_static(
        self, action: CmdRunAction
    ) -> CmdOutputObservation | ErrorObservation:
        """Run a command in a separate, temporary shell.

        A person sees the terminal of the session; nobody sees this one. Programs for which an
        exact output is wanted have none: they would color, fold and shorten what they print.
        """
        text = action.command.strip()
        directory = os.path.join(self.work_dir, action.cwd or "")
        if not self._open().is_directory(directory):
            return ErrorObservation(f"ERROR: There is no directory {directory} to run in.")
        session = type(self)(
            directory,
            self.username,
            self.NO_CHANGE_TIMEOUT_SECONDS,
            self.max_memory_mb,
            env={**self._env, **self._open().exports},
            path_directory=self._path_directory,
            enclosure=self._enclosure,
            keep_output=self._keep_output,
        )
        await session.initialize_async()
        try:
            is_exact, run = action.exact and text, replace(action, is_static=False)
            if is_exact:
                if self.dialect.unchanged_output:
                    await session._execute(CmdRunAction(self.dialect.unchanged_output))
                run = replace(run, command=self.dialect.without_terminal(action.command))
            begin = asyncio.get_running_loop().time()
            reply = await session._execute(run)
            if not isinstance(reply, CmdOutputObservation):
                return reply
            if is_exact:
                reply.command = self.dialect.displayed(action.title or text)
            if session.running and action.report_after is not None:
                seconds = round(asyncio.get_running_loop().time() - begin)
                reply.metadata.suffix = ended_static_suffix(seconds)
            return reply
        finally:
            await session.close_async()

    async def _execute(self, action: CmdRunAction) -> CmdOutputObservation | ErrorObservation:
        """Interpret an action in the protocol's order."""
        supervisor = self._open()
        text = action.command.strip()
        key = control_character(text)
        earlier = self._command
        await supervisor.settle(earlier)
        if earlier is None and not text:
            return nothing_runs(NOTHING_TO_RETRIEVE)
        if earlier is None and action.is_input:
            return nothing_runs(NOTHING_TO_INTERACT_WITH)
        if not action.is_input:
            check = partial(self._rejection, script=action.script or action.exact)
            is_long = len(text) > LONG_COMMAND_CHARS
            error = await asyncio.to_thread(check, text) if is_long else check(text)
            if error:
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

    def _rejection(self, text: str, *, script: bool) -> str:
        """Return the reason for rejecting a command, or ""; a script may have several."""
        commands = [] if script else self.dialect.split(text)
        if len(commands) > 1:
            return multiple_commands(commands)
        end = self.dialect.open_here_document(text)
        return open_here_document(end) if end else ""

    def _type(self, text: str) -> None:
        """Press the key that the text names, or type the text and Enter."""
        shell, key = self._open().shell, key_sequence(text.strip())
        shell.type_line(text) if key is None else shell.press(key)

    async def _run(
        self, action: CmdRunAction, text: str, key: str | None, earlier: Command | None
    ) -> CmdOutputObservation | ErrorObservation:
        """Run a new command, or press a key at the prompt."""
        supervisor = self._open()
        if supervisor.shell.exit_code is not None:
            await supervisor.restart()
        if key is None:
            command = supervisor.run(
                text,
                variables=trace_variables(action.actor.to_json()),
                script=action.script or action.exact,
            )
        else:
            command = supervisor.press(key)
        command.is_exact = action.exact
        if action.keep_output and self._keep_output is not None:
            command.output.keep_all()
        self._command = command
        displayed = self.dialect.displayed(text)
        pending_reply = self._reply(action, command, displayed, text if key else None)
        reply = await supervisor.interrupt_if_cancelled(command, pending_reply)
        if isinstance(reply, ErrorObservation):
            self._command = earlier
        elif earlier is not None:
            reply.metadata.prefix = leftover_prefix(earlier) + reply.metadata.prefix
        return reply

    async def _reply(
        self, action: CmdRunAction, command: Command, displayed: str, key: str | None
    ) -> CmdOutputObservation | ErrorObservation:
        """Wait for the end of a command or a limit, and report the outcome."""
        supervisor = self._open()
        no_change = None if action.blocking else self.NO_CHANGE_TIMEOUT_SECONDS
        report_after = None if action.blocking else action.report_after
        hard = action.timeout or report_after
        command.keep = self._keep_output if action.keep_output else None
        outcome = await supervisor.wait(
            command, no_change=no_change, hard=hard, key=key is not None
        )
        if outcome == "ended" and not command.started and key is None:
            # The shell had ended before it could start the command.
            return await self._run(action, command.text, None, None)
        if outcome in ("no_change", "hard"):
            if outcome == "no_change":
                suffix = no_change_suffix(self.NO_CHANGE_TIMEOUT_SECONDS)
            elif action.timeout:
                suffix = hard_timeout_suffix(action.timeout)
            else:
                program = supervisor.shell.foreground_program()
                suffix = running_suffix(report_after or 0.0, command.text, program)
            if full_screen := supervisor.shell.full_screen_program():
                suffix += full_screen_suffix(*full_screen)
            unfinished = unfinished_reply(command, displayed, suffix, action.hidden)
            unfinished.outcome = "timed_out" if action.timeout and outcome == "hard" else "done"
            return unfinished
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
            command, report, displayed, username=self.username, key=key, hidden=action.hidden
        )
        reply.metadata.suffix += supervisor.notices(command)
        return reply
