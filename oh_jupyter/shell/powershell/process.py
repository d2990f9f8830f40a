"""One PowerShell process on pipes, which runs a command and tells when it ends.

Output and errors come through one pipe, with the markers of ``script.py`` in it. On Windows an
event loop waits for neither a pipe nor a process, so threads do, and hand over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from oh_jupyter.background import start_thread
from oh_jupyter.process import PIPE, spawn
from oh_jupyter.shell.driver import END_OF_INPUT, INTERRUPT, Command, Launch, ShellDriver
from oh_jupyter.shell.output import Marker
from oh_jupyter.shell.powershell.script import read_report, typed_command, typed_script

READ_BYTES = 65_536
MAX_QUEUED_PIECES = 64
"""Pieces that wait for the loop at most; the program that writes has to wait then."""


class PipeReader:
    """Reads what a child writes, and delivers it on an event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_data: Callable[[bytes], None], name: str
    ) -> None:
        """Make a pipe and start to read it."""
        self._loop = loop
        self._on_data = on_data
        self._read_end, self.write_end = os.pipe()
        self._pieces: deque[bytes] = deque()
        self._room = threading.Semaphore(MAX_QUEUED_PIECES)
        self._closed = False
        start_thread(self._read, name)

    def _read(self) -> None:
        """Read until nobody can write any more."""
        while piece := os.read(self._read_end, READ_BYTES):
            self._room.acquire()
            self._pieces.append(piece)
            try:
                self._loop.call_soon_threadsafe(self.read_now)
            except RuntimeError:  # The loop is closed; go on, so that the child can end.
                self._closed = True
            if self._closed:
                self._room.release()
        os.close(self._read_end)

    def read_now(self) -> None:
        """Deliver what has arrived already; only on the loop."""
        while self._pieces:
            piece = self._pieces.popleft()
            self._room.release()
            if not self._closed:
                self._on_data(piece)

    def write_after(self, event: Callable[[], object], data: bytes, name: str) -> None:
        """Write something behind all that the child has written, when something has happened."""
        # A descriptor of its own: ours may be closed by then, and its number be another file's.
        descriptor = os.dup(self.write_end)

        def write() -> None:
            event()
            with contextlib.suppress(OSError):
                os.write(descriptor, data)
            os.close(descriptor)

        start_thread(write, name)

    def close(self) -> None:
        """Deliver nothing more. The thread ends when all who write have ended."""
        self._closed = True
        self.read_now()
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


class PipeWriter:
    """Writes to a child without ever making the loop wait."""

    def __init__(
        self, write: Callable[[bytes], object], close: Callable[[], object], name: str
    ) -> None:
        self._write = write
        self._close = close
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        start_thread(self._send, name)

    def _send(self) -> None:
        with contextlib.suppress(OSError):  # The child has ended: nobody will read it.
            while (data := self._unsent.get()) is not None:
                self._write(data)
        with contextlib.suppress(OSError):
            self._close()

    def write(self, data: bytes) -> None:
        """Write something, after everything before it."""
        self._unsent.put(data)

    def close(self) -> None:
        """Close the pipe when all is written."""
        self._unsent.put(None)


CLOSE_GRACE_SECONDS = 0.5
"""Time between the request to end and the kill when the shell is closed."""
INTERRUPTED_EXIT_CODE = 130
"""Exit code of a command that Ctrl-C has ended, as shells have it."""


class PowerShell(ShellDriver):
    """A PowerShell with the functions of ``script.py`` in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        super().__init__(loop, on_change)
        self._queued_lines: list[bytes] = []
        self._interrupted = False
        self._status: int | None = None

    def start(self, launch: Launch) -> Command:
        """Start PowerShell and install the functions."""
        self._output = PipeReader(self._loop, self._on_output, "oh_jupyter-powershell-output")
        write_end = self._output.write_end
        try:
            self.child = spawn(
                launch.argv,
                cwd=launch.cwd,
                env=launch.env,
                stdin=PIPE,
                stdout=write_end,
                stderr=write_end,
                user=launch.user,
            )
        except OSError:
            self._output.close()
            raise
        assert self.child.stdin is not None
        pipe = self.child.stdin
        fileno = pipe.fileno()
        self._input = PipeWriter(
            lambda data: _write_all(fileno, data), pipe.close, "oh_jupyter-powershell-input"
        )
        # Programs that it started may keep the pipe open, so there need not be an end of file.
        self._output.write_after(
            self.child.wait, self._markers.write(Marker("x")), "oh_jupyter-powershell-exit"
        )
        self.command = Command("0", "", self._token, started=True)
        self._input.write(typed_script(self._token, launch.path_directory))
        return self.command

    def run(
        self, text: str, exports: Mapping[str, str], status: int | None = None, setup: str = ""
    ) -> Command:
        """Give PowerShell a command."""
        command = self._new_command(text)
        self._interrupted = False
        self._status = status
        self._input.write(typed_command(self._token, command.id, text, exports))
        return command

    def type_line(self, text: str) -> None:
        """Type a line; a command that was just given gets it once it has started."""
        data = (text + "\n").encode("utf-8", "surrogateescape")
        if self.command is not None and not self.command.started:
            self._queued_lines.append(data)
        else:
            self._input.write(data)

    def press(self, key: str) -> None:
        """Press Ctrl-C, or Ctrl-D, which closes the pipe; there are no other keys."""
        if key == INTERRUPT:
            self._interrupted = True
            self._interrupt()
        elif key == END_OF_INPUT:
            self._input.close()

    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key while no command runs; Ctrl-D ends PowerShell."""
        if key != END_OF_INPUT:
            return self.run("", exports, INTERRUPTED_EXIT_CODE if key == INTERRUPT else None)
        # Given before the end, so that it is this command which the end is the answer to.
        command = self._new_command("")
        self._input.close()
        return command

    def read_now(self) -> None:
        """Take in all that has arrived."""
        self._output.read_now()

    async def end(self) -> None:
        """End PowerShell and all that it started."""
        self._output.close()
        self._input.close()
        await self._loop.run_in_executor(None, self.child.terminate, CLOSE_GRACE_SECONDS)

    def _interrupt(self) -> None:
        """Press Ctrl-C for PowerShell and the programs that it runs."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGINT)
        else:
            from oh_jupyter.process import windows

            pid = self.child.pid
            start_thread(lambda: windows.interrupt(pid), "oh_jupyter-powershell-interrupt")

    def _on_output(self, data: bytes) -> None:
        self._split_output(data)
        self._on_change()

    def _deliver(self, data: bytes) -> None:
        """Put output where it belongs: PowerShell echoes what is typed, ahead of the command."""
        command = self.command
        if command is not None and command.started and not command.closed:
            command.output.append(data)
        elif self.exit_code is None:
            self._idle.append(data)

    def _on_marker(self, marker: Marker) -> None:
        command = self.command
        if marker.kind == "x":
            self._on_drained()
        elif command is None or marker.command_id != command.id or command.closed:
            return
        elif marker.kind == "b":
            command.started = True
            # Lines with the token, such as the echo, are dropped when the output is taken.
            command.output.append(self.take_idle_output())
            lines, self._queued_lines = self._queued_lines, []
            for line in lines:
                self._input.write(line)
        else:
            self._close_command(command, marker)

    def _close_command(self, command: Command, marker: Marker) -> None:
        """Note that a command has ended, and how."""
        report, ended = read_report(marker.command_id, marker.payload)
        exit_code = report.exit_code
        if self._interrupted and not ended:
            exit_code = INTERRUPTED_EXIT_CODE
        elif self._status is not None:
            exit_code = self._status
        command.closed = True
        command.report = replace(report, exit_code=exit_code)

    def _on_drained(self) -> None:
        """Note that PowerShell has ended and that all of its output is there."""
        status = self.child.returncode or 0
        self.exit_code = 128 - status if status < 0 else status
        if self.command is not None and not self.command.done:
            self.command.output.append(self.take_idle_output())
        self.command = None
        self._input.close()
        self._on_change()


def _write_all(fileno: int, data: bytes) -> None:
    """Write bytes to a pipe, however many it takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fileno, view) :]
