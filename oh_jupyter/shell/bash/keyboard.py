"""Typing to the program that runs, and making sure that Ctrl-C reaches it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from oh_jupyter.shell.bash.proc import read_proc
from oh_jupyter.shell.bash.terminal import Terminal

__all__ = ["Keyboard"]

INTERRUPT = b"\x03"
EXEC_SECONDS = 0.05
"""Seconds in which a program that bash was about to start has certainly started."""


class Keyboard:
    """Types on a terminal on which bash runs.

    Bash forks, makes the fork the foreground job, and starts the program in it. An interrupt in
    between is caught by what is still a copy of bash, and forgotten when the program starts: in a
    terminal a person presses the key again, and so does this class.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, terminal: Terminal, pid: int) -> None:
        self._loop = loop
        self._terminal = terminal
        self._pid = pid

    def type(self, data: bytes, is_running: Callable[[], bool]) -> None:
        """Type; ``is_running`` tells later on whether the command that it is for still runs."""
        starting = data == INTERRUPT and self._is_bash(self._terminal.foreground())
        self._terminal.write(data)
        if starting:
            self._loop.call_later(EXEC_SECONDS, self._interrupt_again, is_running)

    def _interrupt_again(self, is_running: Callable[[], bool]) -> None:
        """Interrupt a program that was being started when the key was pressed."""
        if not is_running():
            return
        group = self._terminal.foreground()
        if group > 0 and not self._is_bash(group):
            # To the group itself: bash may be back in the foreground the next instant.
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGINT)

    def _is_bash(self, pid: int) -> bool:
        """Tell whether a process is bash, or a fork of it that runs no other program yet."""
        # The command line is empty for an instant while the program is replaced.
        return read_proc(pid, "cmdline") in (b"", read_proc(self._pid, "cmdline"))
