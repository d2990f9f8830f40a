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


def waits_for_command_line(pid: int, terminal: Terminal) -> bool:
    """Tell whether a bash waits for a command line, and nothing typed is still unread.

    The system call in which it waits says so: only command lines are read from standard input
    into a buffer of that size.

    Args:
        pid: The bash.
        terminal: Its terminal.

    Returns:
        True only if it is certain.
    """
    return (
        terminal.foreground() == pid
        and not terminal.has_unread_input()
        # Number, descriptor, address, size.
        and read_proc(pid, "syscall").split()[1:4:2] == [STANDARD_INPUT, LINE_BUFFER]
    )
