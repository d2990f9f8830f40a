"""Driver for one PowerShell process on pipes.

Output and errors arrive through one pipe, with the markers of ``script.py``. On Windows an event
loop can wait neither for a pipe nor for a process, so threads do.
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
MAX_QUEUED_CHUNKS = 64
"""Maximum number of chunks queued for the loop; then the writing program blocks."""


class PipeReader:
    """Reads a child's output in a thread, and delivers it on an event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_data: Callable[[bytes], None], name: str
    ) -> None:
        """Create a pipe and start reading."""
        self._loop = loop
        self._on_data = on_data
        self._read_end, self.write_end = os.pipe()
        self._chunks: deque[bytes] = deque()
        self._capacity = threading.Semaphore(MAX_QUEUED_CHUNKS)
        self._closed = False
        start_thread(self._read, name)

    def _read(self) -> None:
        """Read until every writer has closed the pipe."""
        while chunk := os.read(self._read_end, READ_BYTES):
            self._capacity.acquire()
            self._chunks.append(chunk)
            try:
                self._loop.call_soon_threadsafe(self.read_now)
            except RuntimeError:  # the loop is closed; keep reading, so that the child can end
                self._closed = True
            if self._closed:
                self._capacity.release()
        os.close(self._read_end)

    def read_now(self) -> None:
        """Deliver output that has arrived; call it on the loop."""
        while self._chunks:
            chunk = self._chunks.popleft()
            self._capacity.release()
            if not self._closed:
                self._on_data(chunk)

    def write_after(self, event: Callable[[], object], data: bytes, name: str) -> None:
        """Wait for an event in a thread, then write data after the child's output."""
        # A duplicate: the original may be closed by then, and its number reused.
        descriptor = os.dup(self.write_end)

        def write() -> None:
            event()
            with contextlib.suppress(OSError):
                os.write(descriptor, data)
            os.close(descriptor)

        start_thread(write, name)

    def close(self) -> None:
        """Stop delivering; the thread ends when every writer has ended."""
        self._closed = True
        self.read_now()
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


class PipeWriter:
    """Writes to a child in a thread, without blocking the loop."""

    def __init__(
        self, write: Callable[[bytes], object], close: Callable[[], object], name: str
    ) -> None:
        self._write = write
        self._close = close
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        start_thread(self._send, name)

    def _send(self) -> None:
        with contextlib.suppress(OSError):  # the child has ended
            while (data := self._unsent.get()) is not None:
                self._write(data)
        with contextlib.suppress(OSError):
            self._close()

    def write(self, data: bytes) -> None:
        """Queue data."""
        self._unsent.put(data)

    def close(self) -> None:
        """Close the pipe after all queued data."""
        self._unsent.put(None)


CLOSE_GRACE_SECONDS = 0.5
"""Seconds between termination and kill when the shell is closed."""
INTERRUPTED_EXIT_CODE = 130
"""Exit code of a command ended by Ctrl-C, as in other shells."""


class PowerShell(ShellDriver):
    """PowerShell with the functions of ``script.py``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        super().__init__(loop, on_change)
        self._queued_lines: list[bytes] = []
        self._interrupted = False
        self._status: int | None = None

    def start(self, launch: Launch) -> Command:  # noqa: D102
        self._output = PipeReader(self._loop, self._on_output, "oh-shell-powershell-output")
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
            lambda data: _write_all(fileno, data), pipe.close, "oh-shell-powershell-input"
        )
        # Programs that it started may keep the pipe open, so there may be no end of file.
        self._output.write_after(
            self.child.wait, self._markers.write(Marker("x")), "oh-shell-powershell-exit"
        )
        self.command = Command("0", "", self._token, started=True)
        self._input.write(typed_script(self._token, launch.path_directory))
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
        self._interrupted = False
        self._status = status
        typed = typed_command(
            self._token, command.id, text, exports, command.variables, script=script
        )
        self._input.write(typed)
        return command

    def type_line(self, text: str) -> None:
        """Type a line to the running command, or queue it until the command starts."""
        data = (text + "\n").encode("utf-8", "surrogateescape")
        if self.command is not None and not self.command.started:
            self._queued_lines.append(data)
        else:
            self._input.write(data)

    def press(self, key: str) -> None:
        """Press Ctrl-C, or Ctrl-D, which closes the pipe; ignore other keys."""
        if key == INTERRUPT:
            self._interrupted = True
            self._interrupt()
        elif key == END_OF_INPUT:
            self._input.close()

    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key while no command runs; Ctrl-D ends PowerShell."""
        if key != END_OF_INPUT:
            return self.run("", exports, INTERRUPTED_EXIT_CODE if key == INTERRUPT else None)
        # Created before the end, so that the end is reported for this command.
        command = self._new_command("")
        self._input.close()
        return command

    def read_now(self) -> None:  # noqa: D102
        self._output.read_now()

    async def end(self) -> None:  # noqa: D102
        self._output.close()
        self._input.close()
        await self._loop.run_in_executor(None, self.child.terminate, CLOSE_GRACE_SECONDS)

    def _interrupt(self) -> None:
        """Interrupt PowerShell and its programs."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGINT)
        else:
            from oh_jupyter.process import windows

            pid = self.child.pid
            start_thread(lambda: windows.interrupt(pid), "oh-shell-interrupt")

    def _on_output(self, data: bytes) -> None:
        self._split_output(data)
        self._on_change()

    def _deliver(self, data: bytes) -> None:
        """Assign output to the command; before it, PowerShell echoes the typed line."""
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
            # Lines with the token, such as the echo, are removed later.
            command.output.append(self.take_idle_output())
            lines, self._queued_lines = self._queued_lines, []
            for line in lines:
                self._input.write(line)
        else:
            self._close_command(command, marker)

    def _close_command(self, command: Command, marker: Marker) -> None:
        """Record the end and the exit code of a command."""
        report, ended = read_report(marker.command_id, marker.payload)
        exit_code = report.exit_code
        if self._interrupted and not ended:
            exit_code = INTERRUPTED_EXIT_CODE
        elif self._status is not None:
            exit_code = self._status
        command.closed = True
        command.report = replace(report, exit_code=exit_code)

    def _on_drained(self) -> None:
        """Record the end of PowerShell after its last output."""
        status = self.child.returncode or 0
        self.exit_code = 128 - status if status < 0 else status
        if self.command is not None and not self.command.done:
            self.command.output.append(self.take_idle_output())
        self.command = None
        self._input.close()
        self._on_change()


def _write_all(fileno: int, data: bytes) -> None:
    """Write all bytes to a pipe."""
    view = memoryview(data)
    while view:
        view = view[os.write(fileno, view) :]
