"""Replies of the protocol, with OpenHands 0.62's literal texts, which clients compare."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from oh_jupyter.control_messages import RUNNING_HINT
from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation
from oh_jupyter.shell.driver import Command, Report
from oh_jupyter.shell.screen import render
from oh_jupyter.text import shorten

CONTINUED_PREFIX = "[Below is the output of the previous command.]\n"
"""Prefix of all replies for an unfinished command except the first."""

NOTHING_TO_RETRIEVE = "ERROR: No previous running command to retrieve logs from."
NOTHING_TO_INTERACT_WITH = "ERROR: No previous running command to interact with."

SENT = (
    "\n[The input was sent to the running command. Another action is waiting for the output and "
    "will receive it.]"
)
"""Suffix for input that is typed at once; the protocol has none, since input always waits there."""

MAX_CONTENT_CHARS = 30_000
"""Maximum length of a content; the middle of a longer one is omitted."""
MAX_KEPT_CONTENT_CHARS = 28_000
"""The same where a file has the whole; leaves room for what an agent's tool adds."""
MAX_LEFTOVER_CHARS = 2_000
"""The same for the rest of an earlier command."""
MAX_NOTE_CHARS = 400
MAX_CUT_LINE_CHARS = 500
"""Lengths reserved for the note, and for cutting between lines."""
TRUNCATION = "\n[... Observation truncated due to length ...]\n"


def _completed_suffix(exit_code: int, key: str | None) -> str:
    """Return the suffix for a command that has ended."""
    sent = f" CTRL+{key[-1].upper()} was sent." if key else ""
    return f"\n[The command completed with exit code {exit_code}.{sent}]"


def no_change_suffix(seconds: float) -> str:
    """Return the suffix for a command without new output."""
    return f"\n[The command has no new output after {seconds:g} seconds. {RUNNING_HINT}]"


def hard_timeout_suffix(seconds: float) -> str:
    """Return the suffix for a hard timeout."""
    return f"\n[The command timed out after {float(seconds)} seconds. {RUNNING_HINT}]"


def not_executed_suffix(command: str) -> str:
    """Return the suffix for a command rejected while another one runs."""
    return (
        f'\n[Your command "{command}" is NOT executed. The previous command is still running - '
        "You CANNOT send new commands until the previous command is completed. By setting "
        "`is_input` to `true`, you can interact with the current process: "
        f"{RUNNING_HINT}]"
    )


def multiple_commands(commands: list[str]) -> str:
    """Return the error for several top-level commands at once."""
    listing = "\n".join(f"({number}) {text}" for number, text in enumerate(commands, 1))
    return (
        "ERROR: Cannot execute multiple commands at once.\n"
        "Please run each command separately OR chain them into a single command via && or ;\n"
        f"Provided commands:\n{listing}"
    )


def open_here_document(end: str) -> str:
    """Return the error for an unfinished here-document, which bash would run at once."""
    return (
        f"ERROR: A here-document is not finished: no line is just {end}. Nothing was run. Send the "
        f"whole command again, with {end} alone on the last line of the here-document."
    )


def running_suffix(seconds: float, command: str, program: str) -> str:
    """Return the suffix for a command that prints without end; the protocol has no such limit."""
    line = command.partition("\n")[0]
    excerpt = line if line == command else f"{line} ..."
    excerpt = shorten(excerpt, MAX_EXCERPT_CHARS, marker="...")
    now = f", now in: {program[:MAX_EXCERPT_CHARS]}" if program else ""
    return (
        f'\n[The command "{excerpt}" is still running after {seconds:g} seconds{now}. '
        f"{RUNNING_HINT}]"
    )


def ended_static_suffix(seconds: float) -> str:
    """Return the suffix for a static command that was still running when its call ended."""
    return (
        f"\n[The command was stopped after {seconds:g} seconds: a static command ends with its "
        "call. Give it a longer timeout, or run it without is_static.]"
    )


def full_screen_suffix(program: str, pid: int) -> str:
    """Return the suffix for a full-screen program, which output as text cannot show."""
    kill = f", or end it with the static command: kill {pid}" if pid else ""
    return (
        f"\n[{program[:MAX_EXCERPT_CHARS]} holds the terminal as a full-screen program. Leave it "
        f"with its own keys as input{kill}.]"
    )


MAX_EXCERPT_CHARS = 100
"""Maximum length of a command or program in a suffix."""

DROPPED_INPUT = "\n[The command ended before it read all of its input; the rest was dropped.]"
"""Suffix for input that came too late; ours, since a terminal would run it as a command."""


def _history_prefix(content: str) -> str:
    """Return the prefix for output whose beginning was dropped."""
    lines = len(content.splitlines())
    return (
        f"[Previous command outputs are truncated. Showing the last {lines} lines "
        "of the output below.]\n"
    )


def restarted_suffix(cwd: str) -> str:
    """Return the suffix for a replaced shell."""
    return (
        f"\n[The shell itself has ended. A new shell was started in {cwd}; "
        "variables, functions and aliases of the old one are gone.]"
    )


def skipped_startup_suffix(fault: str) -> str:
    """Return the suffix for a shell that was started without start-up files, and why."""
    return (
        f"\n[The shell's start-up files {fault}, so the shell was started without them: variables "
        "and functions that they set are missing.]"
    )


def memory_suffix(used: int, limit: int) -> str:
    """Return the suffix for a command killed for using ``used`` bytes, over ``limit`` MiB."""
    return (
        f"\n[The command was killed: its processes used {used // 1024**2} MiB of memory, "
        f"more than the limit of {limit} MiB.]"
    )


def _shown(command: Command, text: str, limit: int = MAX_KEPT_CONTENT_CHARS) -> str:
    """Return an output for its reader: whole, without its middle, or with a file of the whole."""
    if command.is_exact:
        return text
    if command.keep is None:
        return shorten(text, MAX_CONTENT_CHARS, keep="ends", marker=TRUNCATION)
    return text if len(text) <= limit else _with_file(text, limit, command.keep)


def _with_file(text: str, limit: int, keep: Callable[[str], str]) -> str:
    """Omit whole lines in the middle; say which, and which file has all."""
    half = (limit - MAX_NOTE_CHARS) // 2
    start = text.rfind("\n", half - MAX_CUT_LINE_CHARS, half) + 1 or half
    end = text.find("\n", len(text) - half, len(text) - half + MAX_CUT_LINE_CHARS) + 1
    end = end or len(text) - half
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, end) - text.endswith("\n", start, end)
    lines = f"lines {first} to {last} of {text.count(chr(10)) + 1}" if last > first else "a part"
    try:
        rest = f"The whole output is in {keep(text)}: open parts of it with read."
    except OSError as error:
        rest = f"The whole cannot be kept ({error}): redirect output to a file with >."
    break_before = "" if text.endswith("\n", 0, start) else "\n"
    note = f"[... {lines}, {end - start} of {len(text)} characters, are omitted. {rest} ...]\n"
    return f"{text[:start]}{break_before}{note}{text[end:]}"


def last_lines(command: Command | None, max_lines: int) -> str:
    """Return the last lines of a command's output that was not reported yet."""
    text = "" if command is None else render(command.output.peek(4096))
    return "\n".join(text.rstrip().rsplit("\n", max_lines)[-max_lines:])


def nothing_runs(text: str) -> CmdOutputObservation:
    """Reply to a request about the running command when there is none."""
    return CmdOutputObservation(text, outcome="failed", reason_code="nothing_runs")


def sent_reply(text: str) -> CmdOutputObservation:
    """Reply to input for a command whose output another action will report."""
    metadata = CmdOutputMetadata(suffix=SENT)
    return CmdOutputObservation(content="", command=text, metadata=metadata)


def unfinished_reply(
    command: Command, displayed: str, suffix: str, hidden: bool
) -> CmdOutputObservation:
    """Report a running command with its output since the previous report."""
    taken = _take(command, final=False)
    prefix = CONTINUED_PREFIX if command.replies else ""
    if taken.truncated:
        prefix += _history_prefix(taken.text)
    command.replies += 1
    return CmdOutputObservation(
        content=_shown(command, taken.text),
        command=displayed,
        metadata=CmdOutputMetadata(prefix=prefix, suffix=suffix),
        hidden=hidden,
        head=taken.head,
    )


def completed_reply(
    command: Command,
    report: Report,
    displayed: str,
    *,
    username: str | None,
    key: str | None,
    hidden: bool,
) -> CmdOutputObservation:
    """Report a finished command with its output since the previous report."""
    taken = _take(command, final=True)
    return CmdOutputObservation(
        content=taken.text if hidden else _shown(command, taken.text),
        command=displayed,
        metadata=CmdOutputMetadata(
            exit_code=report.exit_code,
            pid=report.background_pid,
            username=username or _own_name(),
            hostname=platform.node(),
            working_dir=report.cwd,
            py_interpreter_path=_interpreter(report.path, report.cwd),
            prefix=_history_prefix(taken.text) if taken.truncated else "",
            suffix=_completed_suffix(report.exit_code, key) + DROPPED_INPUT * command.dropped_input,
        ),
        hidden=hidden,
        head=taken.head,
    )


def leftover_prefix(command: Command) -> str:
    """Prepend output of an earlier command that arrived after its last report, or ""."""
    content = _take(command, final=True).text
    if not content or command.report is None:
        return ""
    return (
        f'[The previous command "{command.text}" completed with exit code '
        f"{command.report.exit_code}. Its remaining output:]\n"
        f"{_shown(command, content, MAX_LEFTOVER_CHARS)}\n"
        "[Below is the output of your command.]\n"
    )


class _Taken(NamedTuple):
    """Output as stripped text, and its first lines if these were dropped."""

    text: str
    truncated: bool
    head: str


def _take(command: Command, final: bool) -> _Taken:
    output = command.output.take(final, whole=command.keep is not None)
    text, head = _text(command, output.data), _text(command, output.head)
    return _Taken(text, output.truncated, head)


def _text(command: Command, data: bytes) -> str:
    if (token := command.token.encode()) in data:
        data = re.sub(rb"(?m)^.*" + token + rb".*\n?", b"", data)
    return data.decode("utf-8", "replace") if command.is_exact else render(data).strip()


def _interpreter(search_path: str, cwd: str) -> str:
    """Return the ``python`` on a shell's PATH, or ""; faster than ``shutil.which`` on POSIX."""
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
    """Return the current user's name, or the id if it has no name, as in some containers."""
    try:
        import pwd
    except ImportError:  # Windows
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
