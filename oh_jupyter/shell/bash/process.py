"""One bash process on a terminal, which runs a command and tells when it ends, without limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from oh_jupyter.process import spawn
from oh_jupyter.shell.bash.bash_integration import (
    read_reports,
    setup_lines,
    typed_command,
    typed_handshake,
    typed_prompt,
    typed_script,
)
from oh_jupyter.shell.bash.parsing import is_complete
from oh_jupyter.shell.bash.terminal import (
    Keyboard,
    Terminal,
    is_interactive_bash,
    read_proc,
    waits_for_command_line,
)
from oh_jupyter.shell.driver import INTERRUPT, Command, Launch, ShellDriver
from oh_jupyter.shell.output import Marker

CLOSE_GRACE_SECONDS = 0.5
"""Seconds that processes get between the hang-up and the kill when the shell is closed."""

PASTES_ON = b"\x1b[?2004h"
PASTES_OFF = b"\x1b[?2004l"
"""By these a program asks for pasted text to be marked, and no more."""


class Bash(ShellDriver):
    """An interactive bash with our shell integration in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        super().__init__(loop, on_change)
        self._pre_start_output: list[bytes] | None = None
        self._unread_reports = b""
        self._prompts: tuple[str, ...] = ()
        self._queued_keys: list[bytes] = []
        self._typed = b""
        self._takes_pastes = False  # the program asked for pasted text to be marked as such
        self._exec_image = b""
        self._installing = False
        self._reinstalled_for: Command | None = None

    def start(self, launch: Launch) -> Command:
        """Start bash and install the integration."""
        self._path_directory = launch.path_directory
        self._terminal = Terminal(self._loop, raw=False, user=launch.user)
        self._line = Terminal(self._loop, raw=True, user=launch.user)
        slave = self._terminal.slave
        try:
            self.child = spawn(
                launch.argv,
                cwd=launch.cwd,
                env=launch.env,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                controlling_terminal=slave,
                user=launch.user,
                resume=True,
            )
        except OSError:
            self._terminal.close()
            self._line.close()
            raise
        self._loop.add_reader(self.child.fileno(), self._on_child)
        if self.child.returncode is not None:
            self._loop.call_soon(self._on_child)
        self._terminal.start_reading(self._on_output, self._on_hang_up)
        self._line.start_reading(self._on_report, lambda: None)
        self.command = Command("0", "", self._token, started=True)
        self._exec_image = read_proc(self.child.pid, "auxv")
        self._install()
        return self.command

    def run(
        self, text: str, exports: Mapping[str, str], status: int | None = None, setup: str = ""
    ) -> Command:
        """Give bash a command."""
        command = self._new_command(text)
        self._takes_pastes = False
        self._pre_start_output = []
        self._typed = typed_command(
            self._token,
            command.id,
            text,
            complete=is_complete(text),
            setup=setup_lines(self._token, exports, status) + setup,
        )
        self._terminal.restore_modes()
        self._terminal.write(self._typed)
        return command

    def recover(self) -> bool:
        """Find out whether bash waits for input, because our call after the command was lost."""
        command = self.command
        self._detect_exec()
        if command is None or command.done or not self._waits_at_prompt():
            return False
        # What bash wrote before it waited may still be on its way; it arrives before this marker.
        return self._terminal.inject(self._markers.write(Marker("s", command.id)))

    def _waits_at_prompt(self) -> bool:
        return waits_for_command_line(self.child.pid, self._terminal)

    def _continue_at_prompt(self, command: Command) -> None:
        """Ask for what bash should have done before it waited."""
        if not command.closed and self._waits_at_prompt():
            started = command.started
            self._terminal.write(typed_prompt(self._token) if started else self._typed)

    def type_line(self, text: str) -> None:
        """Type lines, each with the key that a person ends it with."""
        if self.command is not None:
            self.command.typed = True
        if self._takes_pastes and "\n" in text:
            text = f"\x1b[200~{text}\x1b[201~"
        self._type((text.replace("\n", "\r") + "\r").encode("utf-8", "surrogateescape"))

    def press(self, key: str) -> None:
        """Press a key."""
        self._type(key.encode())

    def _type(self, data: bytes) -> None:
        """Type something; a command that was just given gets it once it has started."""
        command = self.command
        if command is not None and not command.started:
            self._queued_keys.append(data)
            return
        if command is not None and command.closed:
            command.dropped_input |= command.typed
            return
        self._keyboard.type(data, lambda: command is self.command and self.running)

    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key while no command runs; Ctrl-D ends bash."""
        if key in "\x03\x04\x1a\x1c":  # Any other would be typed into the next command.
            self._terminal.restore_modes()
            self._terminal.write(key.encode())
        return self.run("", exports, 130 if key == INTERRUPT else None)

    def read_now(self) -> None:
        """Take in all that has arrived."""
        self._terminal.read_now()
        self._line.read_now()

    async def end(self) -> None:
        """Hang up, and end bash and all that it started."""
        if self.child.fileno() >= 0:
            self._loop.remove_reader(self.child.fileno())
        self._terminal.close()
        self._line.close()
        self.child.begin_termination(CLOSE_GRACE_SECONDS)
        while (fileno := self.child.fileno()) >= 0:
            news = asyncio.Event()
            self._loop.add_reader(fileno, news.set)
            try:
                await news.wait()
            finally:
                self._loop.remove_reader(fileno)
            self.child.poll()

    def _install(self) -> None:
        self._keyboard = Keyboard(self._loop, self._terminal, self.child.pid)
        self._terminal.write(typed_handshake(self._token, self._terminal.path))

    def _on_output(self, data: bytes) -> None:
        self._split_output(data)
        self._detect_exec()
        self._on_change()

    def _deliver(self, data: bytes) -> None:
        if not data or self._installing or self.exit_code is not None:
            return
        if self._pre_start_output is not None:
            self._pre_start_output.append(data)
        elif self.command is not None and not self.command.closed:
            self.command.output.append(data)
            on, off = data.rfind(PASTES_ON), data.rfind(PASTES_OFF)
            if on != off:
                self._takes_pastes = on > off
        else:
            self._idle.append(data)

    def _on_marker(self, marker: Marker) -> None:
        command = self.command
        if marker.kind == "x":
            self._on_drained()
        elif marker.kind == "r":
            self._terminal.write(
                typed_script(
                    self._token, self._terminal.path, self._line.path, self._path_directory
                )
            )
        elif command is None or not self._belongs(marker.command_id, command):
            self._let_go(marker)
        elif marker.kind == "s":
            self._continue_at_prompt(command)
        elif marker.kind == "b":
            command.started = True
            self._end_pre_start()
            keys, self._queued_keys = self._queued_keys, []
            for data in keys:
                self._type(data)
        elif not command.closed:
            self._pre_start_output = None
            self._installing = False
            unread = self._terminal.discard_input()
            command.dropped_input |= unread and command.typed
            command.closed = True
            self._let_go(marker)
            self._append_job_news(command)
            # The report was written before the marker, so it is there, or about to be.
            self._line.read_now()
        else:
            self._let_go(marker)

    def _let_go(self, marker: Marker) -> None:
        """Let bash go on to its prompt: nothing is typed any more to the command that has ended."""
        if marker.kind == "e":
            self._line.write(f"{marker.command_id}\n".encode())

    def _end_pre_start(self) -> None:
        """Give the command what came before its opening marker, such as a background job's output.

        With ``set -x`` or ``set -v`` bash shows what was typed, and that is dropped.
        """
        window, self._pre_start_output = self._pre_start_output, None
        if self.command is None or window is None:
            return
        self.command.output.append(self._without_prompts(self.take_idle_output()))
        data = self._without_prompts(b"".join(window))
        if self._token.encode() not in data:
            self.command.output.append(data)

    def _without_prompts(self, data: bytes) -> bytes:
        """Output from between two commands, without prompts that are read-only."""
        for prompt in self._prompts:
            data = data.replace(prompt.encode("utf-8", "surrogateescape"), b"")
        return data

    def _on_report(self, data: bytes) -> None:
        reports, self._unread_reports = read_reports(self._unread_reports + data)
        command = self.command
        for report in reports:
            self._prompts = report.prompts
            ours = command is not None and self._belongs(report.command_id, command)
            if command is not None and ours and command.report is None:
                command.report = report
                self._append_job_news(command)
            else:
                self._idle.append(report.jobs.encode())
        self._on_change()

    def _belongs(self, command_id: str, command: Command) -> bool:
        """Tell whether a marker or report is about a command; installing ends ``exec bash``."""
        return command_id == command.id or (command_id == "0" and self._reinstalled_for is command)

    def _append_job_news(self, command: Command) -> None:
        """Add what a person would read about background jobs, after all output of the command."""
        if command.done and command.report is not None and command.report.jobs:
            command.output.append_line(command.report.jobs.encode())

    def _detect_exec(self) -> None:
        """Install the integration again when the command was ``exec bash``."""
        command = self.command
        if command is None or command.closed or not command.started or self._installing:
            return
        if self._terminal.foreground() != self.child.pid:
            return
        image = read_proc(self.child.pid, "auxv")
        if image == self._exec_image or not image.strip(b"\0"):  # All zeros: in the middle of exec.
            return
        self._exec_image = image
        self._reinstalled_for = command
        if not is_interactive_bash(self.child.pid):
            return
        self._installing = True
        output = command.output.take(final=True).data
        command.output.append(output[: output.rfind(b"\n") + 1])
        self._install()

    def _on_child(self) -> None:
        fileno = self.child.fileno()
        if fileno < 0 or (self.child.poll() is None and self.child.fileno() >= 0):
            return
        self._loop.remove_reader(fileno)
        self._mark_exit()

    def _mark_exit(self) -> None:
        """Find the end of a shell's output, also where background jobs keep the terminal."""
        if not self._terminal.inject(self._markers.write(Marker("x", ""))):
            self._terminal.read_now()
            self._loop.call_soon(self._mark_exit)

    def _on_hang_up(self) -> None:
        self._deliver(self._markers.flush())
        self._on_drained()

    def _on_drained(self) -> None:
        """Note that the shell has ended and that all of its output is there."""
        if self.exit_code is None and self.child.returncode is not None:
            status = self.child.returncode
            self.exit_code = 128 - status if status < 0 else status
            self._end_pre_start()
            self.command = None
            self._on_change()
