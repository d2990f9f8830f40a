"""What Linux tells about a running bash, for cases in which bash itself says nothing.

Elsewhere nothing is told, and those cases are left to the person.
"""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.shell.terminal import Terminal

__all__ = ["Prompt", "is_interactive_bash", "read_proc"]

STANDARD_INPUT = b"0x0"
LINE_BUFFER = b"0x400"
"""Size of the buffer into which bash reads command lines; the ``read`` builtin has another."""


def read_proc(pid: int, name: str) -> bytes:
    """Read a file of a process under /proc.

    ``auxv`` holds addresses that are random for each program, so it changes with ``exec``.

    Args:
        pid: The process.
        name: The file.

    Returns:
        Its content; empty if there is none, or it may not be read.
    """
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def is_interactive_bash(pid: int) -> bool:
    """Tell whether a process is a bash that reads commands from its terminal.

    Args:
        pid: The process.

    Returns:
        Whether its arguments say so.
    """
    program, *options = read_proc(pid, "cmdline").split(b"\0")[:-1] or [b""]
    return os.path.basename(program).lstrip(b"-") == b"bash" and all(
        option.startswith(b"-") and (option.startswith(b"--") or b"c" not in option)
        for option in options
    )


class Prompt:
    """Recognizes a bash that waits for a command line.

    Bash reads command lines into one static buffer, so the system call in which it waits has the
    same arguments each time, and nothing else that bash does has.

    Args:
        pid: The bash.
        terminal: Its terminal.
    """

    def __init__(self, pid: int, terminal: Terminal) -> None:
        self._pid = pid
        self._terminal = terminal
        self._waiting_call: list[bytes] | None = None

    def learn(self) -> None:
        """Remember the call. Bash must have no command, and nothing may have been typed."""
        if self._waiting_call is None:
            call = self._call()
            if call[1:2] == [STANDARD_INPUT] and call[3:4] == [LINE_BUFFER]:
                self._waiting_call = call

    def is_waiting(self) -> bool:
        """Look whether bash waits for a command line, and nothing typed is still unread.

        Returns:
            True only if it is certain.
        """
        return (
            self._waiting_call is not None
            and self._terminal.foreground() == self._pid
            and not self._terminal.has_unread_input()
            and self._call() == self._waiting_call
        )

    def _call(self) -> list[bytes]:
        """Read the system call that the process is in: number, descriptor, address, size."""
        return read_proc(self._pid, "syscall").split()[:4]
