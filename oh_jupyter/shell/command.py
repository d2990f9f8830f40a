"""A command on its way through a shell, and what the shell says at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from oh_jupyter.shell.output.buffer import OutputBuffer

__all__ = ["Command", "Report"]


@dataclass(frozen=True)
class Report:
    """What a shell said when it was ready for the next command."""

    command_id: str  # 0 for the preparation of the shell
    exit_code: int
    background_pid: int  # -1 before the first background job
    path: str  # the shell's PATH
    cwd: str
    jobs: str = ""  # what the shell would show about background jobs before its prompt
    prompts: tuple[str, ...] = ()  # what it prints before it reads, and cannot be kept from
    refused: tuple[str, ...] = ()  # the top-level commands, if there were several and none ran


@dataclass
class Command:
    """A command that was given to a shell."""

    id: str
    text: str
    token: str  # the shell's; a line with it is one of ours, shown by ``set -v``
    output: OutputBuffer = field(default_factory=OutputBuffer)
    started: bool = False  # its opening marker was seen: all keys go to the command from here on
    closed: bool = False  # its closing marker was seen: no more output belongs to it
    report: Report | None = None
    replies: int = 0  # observations that there were of it
    killed_at_bytes: int | None = None  # memory that it used when it was killed for that
    cancelled: bool = False  # interrupted, because whoever asked for it went away

    @property
    def done(self) -> bool:
        """Whether it has ended and all of its output is there."""
        return self.closed and self.report is not None
