"""Driver for one bash process on a terminal."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Mapping

from oh_jupyter.errors import ShellError
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
from oh_jupyter.shell.shared_file import SharedFile

CLOSE_GRACE_SECONDS = 0.5
"""Seconds between hang-up and kill when the shell is closed."""

MAX_TYPED_CHARS = 64 * 1024
"""Length from which bash reads the source of a command from a file."""

PASTES_ON = b"\x1b[?2004h"
PASTES_OFF = b"\x1b[?2004l"
"""Sequences by which a program turns bracketed paste on and off."""
SCREEN_SWITCH = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
"""Sequences by which a full-screen program switches to its own screen and back."""


class Bash(ShellDriver):
    """Interactive bash with our shell integration."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        super().__init__(loop, on_change)
        self._pre_start_output: list[bytes] | None = None
        self._unread_reports = b""
        self._prompts: tuple[str, ...] = ()
        self._queued_keys: list[bytes] = []
        self._typed = b""
        self._takes_pastes = False  # whether the program has turned on bracketed paste
        self._is_full_screen = False  # whether the program has switched to the other screen
        self._exec_image = b""
        self._answered_by = ""  # the process id of the bash that answered
        self._paths: list[str] = []  # of terminal and report line, as bash sees them
        self._is_enclosed = False
        self._pid: int | None = None  # bash's own, in a sandbox
        self._installing = False
        self._reinstalled_for: Command | None = None
        self._source: SharedFile | None = None  # of a long command that has not started

    @property
    def pid(self) -> int:
        """Process id of bash; in a sandbox it is known once bash reads."""
        return self.child.pid if self._pid is None else self._pid

    def start(self, launch: Launch) -> Command:  # noqa: D102
        self._launch = launch
        self._terminal = Terminal(self._loop, raw=False, user=launch.user)
        self._line = Terminal(self._loop, raw=True, user=launch.user)
        slave = self._terminal.slave
        argv, cwd, self._paths = launch.argv, launch.cwd, [self._terminal.path, self._line.path]
        try:
            if launch.enclosure is not None:
                self._is_enclosed = True
                argv, self._paths = launch.enclosure.enclose(argv, cwd, self._paths)
                cwd = "/"
            self.child = spawn(
                argv,
                cwd=cwd,
                env=launch.env,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                controlling_terminal=slave,
                user=launch.user,
                resume=True,
                remove_when_orphaned=(
                    None if launch.enclosure is None else launch.enclosure.folder
                ),
            )
        except (OSError, ShellError):
            self._terminal.close()
            self._line.close()
            raise
        self._loop.add_reader(self.child.fileno(), self._on_child)
        if self.child.returncode is not None:
            self._loop.call_soon(self._on_child)
        self._terminal.start_reading(self._on_output, self._on_hang_up)
        self._line.start_reading(self._on_report, lambda: None)
        self.command = Command("0", "", self._token, started=True)
        self._exec_image = read_proc(self.pid, "auxv")
        self._install()
        return self.command

    def run(  # noqa: D102
        self,
        text: str,
        exports: Mapping[str, str],
        status: int | None = None,
        setup: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        script: bool = False,
    ) -> Command:
        command = self._new_command(text, variables)
        self._takes_pastes = self._is_full_screen = False
        self._pre_start_output = []
        self._typed = typed_command(
            self._token,
            command.id,
            text,
            complete=is_complete(text),
            setup=setup_lines(self._token, exports, status, command.variables) + setup,
            store=self._store,
        )
        self._terminal.restore_modes()
        self._terminal.write(self._typed)
        return command

    def _store(self, source: str) -> str | None:
        """Store a long source in a file, since a terminal takes a megabyte a second."""
        self._remove_source()
        if len(source) <= MAX_TYPED_CHARS:
            return None
        try:
            self._source = SharedFile(self._launch.enclosure, self._launch.user)
            self._source.write(source.encode("utf-8", "surrogateescape"))
        except OSError:
            self._remove_source()
            return None
        return self._source.path_inside

    def _remove_source(self) -> None:
        file, self._source = self._source, None
        if file is not None:
            file.remove()

    def recover(self) -> bool:
        """Detect a bash that waits for input because our call after the command was lost."""
        command = self.command
        self._detect_exec()
        if self._is_enclosed and self._continue_stopped():
            return True
        if command is None or command.done or not self._waits_at_prompt():
            return False
        # Earlier output of bash arrives before this marker.
        return self._terminal.inject(self._markers.write(Marker("s", command.id)))

    def _continue_stopped(self) -> bool:
        """Continue a bash that stopped itself; our guardian sees stops of its own child only."""
        if read_proc(self.pid, "stat").rpartition(b") ")[2][:1] != b"T":
            return False
        os.kill(self.pid, signal.SIGCONT)
        return True

    def _waits_at_prompt(self) -> bool:
        return waits_for_command_line(self.pid, self._terminal)

    def _continue_at_prompt(self, command: Command) -> None:
        """Type the call that bash has missed."""
        if not command.closed and self._waits_at_prompt():
            started = command.started
            self._terminal.write(typed_prompt(self._token) if started else self._typed)

    def type_line(self, text: str) -> None:
        """Type lines, each followed by Enter."""
        if self.command is not None:
            self.command.typed = True
        if self._takes_pastes and "\n" in text:
            text = f"\x1b[200~{text}\x1b[201~"
        self._type((text.replace("\n", "\r") + "\r").encode("utf-8", "surrogateescape"))

    def press(self, key: str) -> None:  # noqa: D102
        self._type(key.encode())

    def _type(self, data: bytes) -> None:
        """Type to the running command, or queue it until the command starts."""
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
        if key in "\x03\x04\x1a\x1c":  # other keys would go to the next command
            self._terminal.restore_modes()
            self._terminal.write(key.encode())
        return self.run("", exports, 130 if key == INTERRUPT else None)

    def relaying_program(self) -> str:  # noqa: D102
        if self._is_enclosed or self._answered_by == str(self.child.pid):
            return ""
        group = self._terminal.foreground()
        if group <= 0 or not read_proc(group, "cmdline") or is_interactive_bash(group):
            return ""  # such as a bash that newgrp started
        return read_proc(group, "comm").decode("utf-8", "replace").strip() or "a program"

    def foreground_program(self) -> str:  # noqa: D102
        group = self._terminal.foreground()
        if group <= 0 or group == self.pid:
            return ""
        words = read_proc(group, "cmdline").replace(b"\0", b" ")
        return " ".join(words.decode("utf-8", "replace").split())

    def full_screen_program(self) -> tuple[str, int] | None:  # noqa: D102
        program = self.foreground_program() if self._is_full_screen else ""
        return (
            (program, 0 if self._is_enclosed else self._terminal.foreground()) if program else None
        )

    def read_now(self) -> None:  # noqa: D102
        self._terminal.read_now()
        self._line.read_now()

    async def end(self) -> None:  # noqa: D102
        if self.child.fileno() >= 0:
            self._loop.remove_reader(self.child.fileno())
        self._terminal.close()
        self._line.close()
        self._remove_source()
        self.child.begin_termination(CLOSE_GRACE_SECONDS)
        while (fileno := self.child.fileno()) >= 0:
            readable = asyncio.Event()
            self._loop.add_reader(fileno, readable.set)
            try:
                await readable.wait()
            finally:
                self._loop.remove_reader(fileno)
            self.child.poll()

    def _install(self) -> None:
        self._keyboard = Keyboard(self._loop, self._terminal, lambda: self.pid)
        self._terminal.write(typed_handshake(self._token, self._paths[0]))

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
            for match in SCREEN_SWITCH.finditer(data):
                self._is_full_screen = match[1] == b"h"
        else:
            self._idle.append(data)

    def _on_marker(self, marker: Marker) -> None:
        command = self.command
        if marker.kind == "x":
            self._on_drained()
        elif marker.kind == "r":
            self._answered_by = marker.command_id
            if self._is_enclosed:
                # bash reads our line, so it is in the foreground.
                self._pid = self._terminal.foreground()
                self._exec_image = read_proc(self.pid, "auxv")
            variables = None if command is None else command.variables
            terminal, line = self._paths
            self._terminal.write(
                typed_script(self._token, terminal, line, self._launch.path_directory, variables)
            )
        elif command is None or not self._belongs(marker.command_id, command):
            self._release_prompt(marker)
        elif marker.kind == "s":
            self._continue_at_prompt(command)
        elif marker.kind == "b":
            command.started = True
            self._remove_source()
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
            self._release_prompt(marker)
            self._append_job_messages(command)
            # The report was written before the marker.
            self._line.read_now()
        else:
            self._release_prompt(marker)

    def _release_prompt(self, marker: Marker) -> None:
        """Let bash continue to its prompt, now that unread input of the command is discarded."""
        if marker.kind == "e":
            self._line.write(f"{marker.command_id}\n".encode())

    def _end_pre_start(self) -> None:
        """Add output from before the opening marker, such as a background job's, to the command.

        Drop it if it contains our typed text, which bash prints after ``set -x`` or ``set -v``.
        """
        chunks, self._pre_start_output = self._pre_start_output, None
        if self.command is None or chunks is None:
            return
        self.command.output.append(self._without_prompts(self.take_idle_output()))
        data = self._without_prompts(b"".join(chunks))
        if self._token.encode() not in data:
            self.command.output.append(data)

    def _without_prompts(self, data: bytes) -> bytes:
        """Remove read-only prompts from output between two commands."""
        for prompt in self._prompts:
            data = data.replace(prompt.encode("utf-8", "surrogateescape"), b"")
        return data

    def _on_report(self, data: bytes) -> None:
        reports, self._unread_reports = read_reports(self._unread_reports + data, self._token)
        command = self.command
        for report in reports:
            self._prompts = report.prompts
            matches = command is not None and self._belongs(report.command_id, command)
            if command is not None and matches and command.report is None:
                command.report = report
                self._append_job_messages(command)
            else:
                self._idle.append(report.jobs.encode())
        self._on_change()

    def _belongs(self, command_id: str, command: Command) -> bool:
        """Return whether an id refers to a command; id 0 also ends an ``exec bash``."""
        return command_id == command.id or (command_id == "0" and self._reinstalled_for is command)

    def _append_job_messages(self, command: Command) -> None:
        """Append bash's messages about background jobs to the output of a finished command."""
        if command.done and command.report is not None and command.report.jobs:
            command.output.append_line(command.report.jobs.encode())

    def _detect_exec(self) -> None:
        """Reinstall the integration if the command was ``exec bash``."""
        command = self.command
        if command is None or command.closed or not command.started or self._installing:
            return
        if self._terminal.foreground() != self.pid:
            return
        image = read_proc(self.pid, "auxv")
        if image == self._exec_image or not image.strip(b"\0"):  # all zeros during exec
            return
        self._exec_image = image
        self._reinstalled_for = command
        if not is_interactive_bash(self.pid):
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
        """Mark the end of the shell's output; background jobs may keep the terminal open."""
        if not self._terminal.inject(self._markers.write(Marker("x", ""))):
            self._terminal.read_now()
            self._loop.call_soon(self._mark_exit)

    def _on_hang_up(self) -> None:
        self._deliver(self._markers.flush())
        self._on_drained()

    def _on_drained(self) -> None:
        """Record the end of the shell after its last output."""
        if self.exit_code is None and self.child.returncode is not None:
            status = self.child.returncode
            self.exit_code = 128 - status if status < 0 else status
            self._end_pre_start()
            self.command = None
            self._on_change()
