"""The literal texts of the protocol, which clients and their tests compare.

They are those of OpenHands 0.62; agents are trained on them.
"""

from __future__ import annotations

__all__ = [
    "CONTINUED_PREFIX",
    "HINT",
    "NOTHING_TO_INTERACT_WITH",
    "NOTHING_TO_RETRIEVE",
    "SENT",
    "completed_suffix",
    "hard_timeout_suffix",
    "history_prefix",
    "leftover_prefix",
    "memory_suffix",
    "multiple_commands",
    "no_change_suffix",
    "not_executed_suffix",
    "restarted_suffix",
    "truncate",
]

HINT = (
    "You may wait longer to see additional output by sending empty command '', "
    "send other commands to interact with the current process, "
    'send keys ("C-c", "C-z", "C-d") to interrupt/kill the previous command before sending your '
    "new command, or use the timeout parameter in execute_bash for future commands."
)
"""What an agent can do about a command that still runs; part of three suffixes."""

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


def completed_suffix(exit_code: int, key: str | None) -> str:
    """Say that the command has ended."""
    sent = f" CTRL+{key[-1].upper()} was sent." if key else ""
    return f"\n[The command completed with exit code {exit_code}.{sent}]"


def no_change_suffix(seconds: float) -> str:
    """Say that the command printed nothing for some time."""
    return f"\n[The command has no new output after {seconds:g} seconds. {HINT}]"


def hard_timeout_suffix(seconds: float) -> str:
    """Say that the hard time limit was reached."""
    return f"\n[The command timed out after {float(seconds)} seconds. {HINT}]"


def not_executed_suffix(command: str) -> str:
    """Refuse a command, since another one still runs."""
    return (
        f'\n[Your command "{command}" is NOT executed. The previous command is still running - '
        "You CANNOT send new commands until the previous command is completed. By setting "
        "`is_input` to `true`, you can interact with the current process: "
        f"{HINT}]"
    )


def multiple_commands(commands: list[str]) -> str:
    """Refuse several top-level commands at once."""
    listing = "\n".join(f"({number}) {text}" for number, text in enumerate(commands, 1))
    return (
        "ERROR: Cannot execute multiple commands at once.\n"
        "Please run each command separately OR chain them into a single command via && or ;\n"
        f"Provided commands:\n{listing}"
    )


def history_prefix(content: str) -> str:
    """Say that the beginning of the output was dropped."""
    lines = len(content.splitlines())
    return (
        f"[Previous command outputs are truncated. Showing the last {lines} lines "
        "of the output below.]\n"
    )


def leftover_prefix(command: str, exit_code: int, content: str) -> str:
    """Hand over what an earlier command printed after it had last been asked for.

    Not in the protocol, which mixes that output into the content of the new command.
    """
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


def truncate(content: str) -> str:
    """Cut the middle out of a content of more than 30 000 characters."""
    if len(content) <= MAX_CONTENT_CHARS:
        return content
    half = MAX_CONTENT_CHARS // 2
    return content[:half] + TRUNCATION + content[-half:]
