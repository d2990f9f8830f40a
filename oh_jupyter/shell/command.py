"""A command on its way through a shell, and what the shell says at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from oh_jupyter.shell.output.buffer import OutputBuffer

__all__ = ["Command", "Report"]


@dataclass(frozen=True)
class Report:
    """What a shell said when it was ready for the next command.

    Attributes:
        command_id: The command that ended; 0 for the preparation of the shell.
        exit_code: Its exit status.
        background_pid: Process id of the last background job; -1 before the first.
        path: The shell's PATH.
        cwd: The shell's working directory.
        jobs: What the shell would show about background jobs before its prompt.
        refused: The top-level commands that it saw, if there were several and it ran none.
    """

    command_id: str
    exit_code: int
    background_pid: int
    path: str
    cwd: str
    jobs: str = ""
    refused: tuple[str, ...] = ()


@dataclass
class Command:
    """A command that was given to a shell.

    Attributes:
        id: Number of the command, as it comes back in marks and reports.
        text: The command, as it was given.
        token: The shell's random token; a line with it is one of ours, shown by ``set -v``.
        output: What it has printed and nobody has taken yet.
        started: Its opening mark was seen; all keys go to the command from here on.
        closed: Its closing mark was seen; no more output belongs to it.
        report: What the shell said at its end.
        replies: How many observations there were of it.
        memory_used: Bytes that it used when it was killed for that, or None.
        taken_back: It was interrupted, because whoever asked for it went away.
    """

    id: str
    text: str
    token: str
    output: OutputBuffer = field(default_factory=OutputBuffer)
    started: bool = False
    closed: bool = False
    report: Report | None = None
    replies: int = 0
    memory_used: int | None = None
    taken_back: bool = False

    @property
    def done(self) -> bool:
        """Whether it has ended and all of its output is there."""
        return self.closed and self.report is not None
