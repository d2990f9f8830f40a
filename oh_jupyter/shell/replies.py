"""Observations in the states that the protocol knows."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
from functools import cache

from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation
from oh_jupyter.shell import messages
from oh_jupyter.shell.command import Command, Report
from oh_jupyter.shell.output.render import render

__all__ = ["completed", "error", "last_lines", "leftover", "sent", "unfinished"]


def error(content: str) -> CmdOutputObservation:
    """Answer an action that needs a running command while there is none; the exit code is -1."""
    return CmdOutputObservation(content=content)


def last_lines(command: Command | None) -> str:
    """The last three lines that a command has printed and nobody has taken yet."""
    text = "" if command is None else render(command.output.peek(4096))
    return "\n".join(text.rstrip().rsplit("\n", 3)[-3:])


def sent(text: str) -> CmdOutputObservation:
    """Answer input for a command whose output another action waits for; the exit code is -1."""
    metadata = CmdOutputMetadata(suffix=messages.SENT)
    return CmdOutputObservation(content="", command=text, metadata=metadata)


def unfinished(command: Command, shown: str, suffix: str, hidden: bool) -> CmdOutputObservation:
    """Report on a command that still runs, with its output since the last report."""
    content, truncated = _take(command, final=False)
    prefix = messages.CONTINUED_PREFIX if command.replies else ""
    if truncated:
        prefix += messages.history_prefix(content)
    command.replies += 1
    return CmdOutputObservation(
        content=messages.truncate(content),
        command=shown,
        metadata=CmdOutputMetadata(prefix=prefix, suffix=suffix),
        hidden=hidden,
    )


def completed(
    command: Command,
    report: Report,
    shown: str,
    *,
    username: str | None,
    key: str | None,
    hidden: bool,
) -> CmdOutputObservation:
    """Report on a command that has ended, with its output since the last report."""
    content, truncated = _take(command, final=True)
    return CmdOutputObservation(
        content=content if hidden else messages.truncate(content),
        command=shown,
        metadata=CmdOutputMetadata(
            exit_code=report.exit_code,
            pid=report.background_pid,
            username=username or _own_name(),
            hostname=platform.node(),
            working_dir=report.cwd,
            py_interpreter_path=_interpreter(report.path, report.cwd),
            prefix=messages.history_prefix(content) if truncated else "",
            suffix=messages.completed_suffix(report.exit_code, key),
        ),
        hidden=hidden,
    )


def leftover(command: Command) -> str:
    """The prefix with what an ended command printed after its last report; "" if nothing."""
    content, _ = _take(command, final=True)
    if not content or command.report is None:
        return ""
    return messages.leftover_prefix(
        command.text, command.report.exit_code, messages.truncate(content)
    )


def _take(command: Command, final: bool) -> tuple[str, bool]:
    """Take a command's output as text without white space around it."""
    taken = command.output.take(final)
    data = taken.data
    if (token := command.token.encode()) in data:
        data = re.sub(rb"(?m)^.*" + token + rb".*\n?", b"", data)
    return render(data).strip(), taken.truncated


def _interpreter(search_path: str, cwd: str) -> str:
    """Find the ``python`` of a shell, or "".

    ``shutil.which`` does it on Windows, where endings count; here it would take as long as all else
    that a short command costs on our side.
    """
    if os.name != "posix":
        return shutil.which("python", path=search_path) or ""
    for directory in search_path.split(os.pathsep) if search_path else ():
        if not directory.startswith("/"):
            directory = os.path.join(cwd, directory)
        program = f"{directory}/python"
        if os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    return ""


@cache
def _own_name() -> str:
    """Return the name of the user we run as; a container may have a number only."""
    try:
        import pwd
    except ImportError:  # Windows
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
