"""What Linux tells about a running bash, for cases in which bash itself says nothing.

Elsewhere nothing is told, and those cases are left to the person.
"""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.shell.bash.terminal import Terminal

__all__ = ["is_interactive_bash", "read_proc", "waits_for_command_line"]

STANDARD_INPUT = b"0x0"
LINE_BUFFER = b"0x400"
"""Size of the buffer into which bash 5 reads command lines; the ``read`` builtin has another."""


def read_proc(pid: int, name: str) -> bytes:
    """Read a file of a process under /proc; empty where there is none.

    ``auxv`` holds addresses that are random for each program, so it changes with ``exec``.
    """
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def is_interactive_bash(pid: int) -> bool:
    """Whether a process is, by its arguments, a bash that reads commands from its terminal."""
    program, *options = read_proc(pid, "cmdline").split(b"\0")[:-1] or [b""]
    return os.path.basename(program).lstrip(b"-") == b"bash" and all(
        option.startswith(b"-") and (option.startswith(b"--") or b"c" not in option)
        for option in options
    )


def waits_for_command_line(pid: int, terminal: Terminal) -> bool:
    """Whether a bash certainly waits for a command line, and nothing typed is still unread.

    The system call in which it waits says so: only command lines are read from standard input
    into a buffer of that size.
    """
    return (
        terminal.foreground() == pid
        and not terminal.has_unread_input()
        # Number, descriptor, address, size.
        and read_proc(pid, "syscall").split()[1:4:2] == [STANDARD_INPUT, LINE_BUFFER]
    )
