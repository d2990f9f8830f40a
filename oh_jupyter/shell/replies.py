"""The replies of the protocol, whose texts are OpenHands 0.62's: clients and tests compare them."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
from functools import cache

from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation
from oh_jupyter.messages import RUNNING_HINT
from oh_jupyter.shell.driver import Command, Report
from oh_jupyter.shell.screen import render

CONTINUED_PREFIX = "[Below is the output of the previous command.]\n"
"""Prefix from the second reply on the same unfinished command onwards."""

NOTHING_TO_RETRIEVE = "ERROR: No previous running command to retrieve logs from."
NOTHING_TO_INTERACT_WITH = "ERROR: No previous running command to interact with."

SENT = (
    "\n[The input was sent to the command that is running. Another action waits for its output, "
    "and gets what comes of it.]"
)
"""Suffix where input does not wait its turn; ours, since in the protocol it always would."""

MAX_CONTENT_CHARS = 30_000
"""Length beyond which the middle of a content is left out."""
TRUNCATION = "\n[... Observation truncated due to length ...]\n"


def _completed_suffix(exit_code: int, key: str | None) -> str:
    """Say that the command has ended."""
    sent = f" CTRL+{key[-1].upper()} was sent." if key else ""
    return f"\n[The command completed with exit code {exit_code}.{sent}]"


def no_change_suffix(seconds: float) -> str:
    """Say that the command printed nothing for some time."""
    return f"\n[The command has no new output after {seconds:g} seconds. {RUNNING_HINT}]"


def hard_timeout_suffix(seconds: float) -> str:
    """Say that the hard time limit was reached."""
    return f"\n[The command timed out after {float(seconds)} seconds. {RUNNING_HINT}]"


def not_executed_suffix(command: str) -> str:
    """Refuse a command, since another one still runs."""
    return (
        f'\n[Your command "{command}" is NOT executed. The previous command is still running - '
        "You CANNOT send new commands until the previous command is completed. By setting "
        "`is_input` to `true`, you can interact with the current process: "
        f"{RUNNING_HINT}]"
    )


def multiple_commands(commands: list[str]) -> str:
    """Refuse several top-level commands at once."""
    listing = "\n".join(f"({number}) {text}" for number, text in enumerate(commands, 1))
    return (
        "ERROR: Cannot execute multiple commands at once.\n"
        "Please run each command separately OR chain them into a single command via && or ;\n"
        f"Provided commands:\n{listing}"
    )


def open_here_document(end: str) -> str:
    """Refuse a command whose here-document is not finished: bash would run it at once."""
    return (
        f"ERROR: A here-document is not finished: no line is just {end}. Nothing was run. Send the "
        f"whole command again, with {end} on a line of its own and nothing around it."
    )


DROPPED_INPUT = "\n[The command ended before it read all of its input; the rest was dropped.]"
"""Suffix where input came too late; ours, since a terminal would run it as a command."""


def _history_prefix(content: str) -> str:
    """Say that the beginning of the output was dropped."""
    lines = len(content.splitlines())
    return (
        f"[Previous command outputs are truncated. Showing the last {lines} lines "
        "of the output below.]\n"
    )


def _leftover_prefix(command: str, exit_code: int, content: str) -> str:
    """Hand over what an earlier command printed after it had last been asked for."""
    return (
        f'[The previous command "{command}" completed with exit code {exit_code}. '
        f"Its remaining output:]\n{content}\n[Below is the output of your command.]\n"
    )


def restarted_suffix(cwd: str) -> str:
    """Say that the shell has ended and that there is a new one."""
    return (
        f"\n[The shell itself has ended. A new shell was started in {cwd}; "
        "variables, functions and aliases of the old one are gone.]"
    )


def memory_suffix(used: int, limit: int) -> str:
    """Say that the command was killed because it used ``used`` bytes, of ``limit`` MiB."""
    return (
        f"\n[The command was killed: its processes used {used // 1024**2} MiB of memory, "
        f"more than the limit of {limit} MiB.]"
    )


def _truncate(content: str) -> str:
    """Cut the middle out of a content of more than 30 000 characters."""
    if len(content) <= MAX_CONTENT_CHARS:
        return content
    half = MAX_CONTENT_CHARS // 2
    return content[:half] + TRUNCATION + content[-half:]


def last_lines(command: Command | None, max_lines: int) -> str:
    """The last lines that a command has printed and nobody has taken yet."""
    text = "" if command is None else render(command.output.peek(4096))
    return "\n".join(text.rstrip().rsplit("\n", max_lines)[-max_lines:])


def sent_reply(text: str) -> CmdOutputObservation:
    """Answer input for a command whose output another action waits for; the exit code is -1."""
    metadata = CmdOutputMetadata(suffix=SENT)
    return CmdOutputObservation(content="", command=text, metadata=metadata)


def unfinished_reply(
    command: Command, shown: str, suffix: str, hidden: bool
) -> CmdOutputObservation:
    """Report on a command that still runs, with its output since the last report."""
    content, truncated = _take(command, final=False)
    prefix = CONTINUED_PREFIX if command.replies else ""
    if truncated:
        prefix += _history_prefix(content)
    command.replies += 1
    return CmdOutputObservation(
        content=_truncate(content),
        command=shown,
        metadata=CmdOutputMetadata(prefix=prefix, suffix=suffix),
        hidden=hidden,
    )


def completed_reply(
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
        content=content if hidden else _truncate(content),
        command=shown,
        metadata=CmdOutputMetadata(
            exit_code=report.exit_code,
            pid=report.background_pid,
            username=username or _own_name(),
            hostname=platform.node(),
            working_dir=report.cwd,
            py_interpreter_path=_interpreter(report.path, report.cwd),
            prefix=_history_prefix(content) if truncated else "",
            suffix=_completed_suffix(report.exit_code, key) + DROPPED_INPUT * command.dropped_input,
        ),
        hidden=hidden,
    )


def leftover_prefix(command: Command) -> str:
    """The prefix with what an ended command printed after its last report; "" if nothing."""
    content, _ = _take(command, final=True)
    if not content or command.report is None:
        return ""
    return _leftover_prefix(command.text, command.report.exit_code, _truncate(content))


def _take(command: Command, final: bool) -> tuple[str, bool]:
    """Take a command's output as text without white space around it."""
    taken = command.output.take(final)
    data = taken.data
    if (token := command.token.encode()) in data:
        data = re.sub(rb"(?m)^.*" + token + rb".*\n?", b"", data)
    return render(data).strip(), taken.truncated


def _interpreter(search_path: str, cwd: str) -> str:
    """Find the ``python`` of a shell, or ""; ``shutil.which`` takes much longer on POSIX."""
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
