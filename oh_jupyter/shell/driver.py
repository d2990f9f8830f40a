"""Interface between sessions and shells: a driver is one process, a dialect is plain data."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oh_jupyter.process import Child
from oh_jupyter.shell.output import Marker, MarkerParser, OutputBuffer

NO_EDITOR = dict.fromkeys(("GIT_EDITOR", "VISUAL", "EDITOR"), "true")
"""Variables of a program that leaves each text as it is: an editor would wait for keys."""

INTERRUPT = "\x03"
"""Character of Ctrl-C."""
END_OF_INPUT = "\x04"
"""Character of Ctrl-D."""

_CONTROL_KEY = re.compile(r"C-(.)|(?i:CTRL)[-+]([A-Za-z])")
_NAMED_KEYS = {
    "ENTER": "\r",
    "TAB": "\t",
    "BS": "\x7f",
    "ESC": "\x1b",
    "UP": "\x1b[A",
    "DOWN": "\x1b[B",
    "RIGHT": "\x1b[C",
    "LEFT": "\x1b[D",
    "HOME": "\x1b[H",
    "END": "\x1b[F",
    "PGUP": "\x1b[5~",
    "PGDN": "\x1b[6~",
}


def control_character(command: str) -> str | None:
    """Return the character of a control key such as ``C-c``, ``CTRL+C`` or ``CTRL-C``."""
    match = _CONTROL_KEY.fullmatch(command)
    if match is None:
        return None
    key = (match[1] or match[2]).upper()
    if key == "?":
        return "\x7f"
    return chr(ord(key) & 0x1F) if "@" <= key <= "_" else None


def key_sequence(text: str) -> str | None:
    """Return the characters of a named key; names other than control keys are upper-case."""
    return _NAMED_KEYS.get(text) or control_character(text)


@dataclass(frozen=True)
class Report:
    """Report of a shell that is ready for the next command."""

    command_id: str  # 0 for the installation of the integration
    exit_code: int
    background_pid: int  # -1 before the first background job
    path: str  # the shell's PATH
    cwd: str
    jobs: str = ""  # the shell's messages about background jobs
    prompts: tuple[str, ...] = ()  # read-only prompts, which it prints before it reads
    refused: tuple[str, ...] = ()  # the top-level commands, if several were rejected


@dataclass
class Command:
    """A command in a shell."""

    id: str
    text: str
    token: str  # the shell's; a line with it is one of ours, shown by ``set -v``
    output: OutputBuffer = field(default_factory=OutputBuffer)
    started: bool = False  # opening marker seen: keys now go to the command
    closed: bool = False  # closing marker seen: its output is complete
    report: Report | None = None
    replies: int = 0  # number of its observations so far
    typed: bool = False  # input was typed to it
    dropped_input: bool = False  # it ended before it had read all of its input
    killed_at_bytes: int | None = None  # memory usage when it was killed for exceeding the limit
    cancelled: bool = False  # interrupted because its task was cancelled
    is_exact: bool = False  # its output is reported unchanged and whole
    keep: Callable[[str], str] | None = None  # stores a long output; returns the file's path
    variables: Mapping[str, str] = field(default_factory=dict)  # only for this command
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> bool:
        """True if it has ended and all of its output has arrived."""
        return self.closed and self.report is not None


class Enclosure(Protocol):
    """A sandbox for a shell's processes, such as ``oh_jupyter.sandbox.Box``.

    Attributes:
        folder: Folder to remove when nobody can close it any more.
        temporary_dir: A directory that both sides see.
        temporary_dir_inside: Its path inside.
    """

    folder: str
    temporary_dir: str
    temporary_dir_inside: str

    def enclose(
        self, argv: Sequence[str], cwd: str, terminals: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return the command line that runs a program inside, and its terminals' paths there."""

    def check(self, pid: int) -> None:
        """Raise ShellError unless a started process is enclosed as decided."""

    def outside(self, path: str) -> str | None:
        """Return the path outside of a path inside, or None if it is hidden."""


@dataclass(frozen=True)
class Launch:
    """Parameters for starting a shell."""

    argv: list[str]
    cwd: str
    env: Mapping[str, str]
    user: str | None
    path_directory: str | None  # put first on its PATH after the start-up files
    enclosure: Enclosure | None = None


class ShellDriver(ABC):
    """One shell process, without protocol and time limits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        """Prepare a shell; `start` starts it."""
        self._loop = loop
        self._on_change = on_change
        self._token = "oh_" + secrets.token_hex(8)
        self._markers = MarkerParser(self._token)
        self._ids = itertools.count(1)
        self._idle = OutputBuffer()
        self.command: Command | None = None  # the last one, running or ended
        self.exit_code: int | None = None  # the shell's own, after its output was read
        self.last_change = loop.time()
        self.child: Child

    @property
    def pid(self) -> int:
        """Process id of the shell, which is not the child where that is a sandbox's program."""
        return self.child.pid

    @property
    def running(self) -> bool:
        """True while a command is running."""
        return self.command is not None and not self.command.done

    def _new_command(self, text: str, variables: Mapping[str, str] | None = None) -> Command:
        id = str(next(self._ids))
        self.command = Command(id, text, self._token, variables=variables or {})
        return self.command

    def _split_output(self, data: bytes) -> None:
        """Separate the shell's output from the markers in it, and process both."""
        self.last_change = self._loop.time()
        for piece in self._markers.split(data):
            if isinstance(piece, Marker):
                self._on_marker(piece)
            else:
                self._deliver(piece)

    @abstractmethod
    def _on_marker(self, marker: Marker) -> None: ...

    @abstractmethod
    def _deliver(self, data: bytes) -> None:
        """Assign output to the current command, or to background jobs."""

    def relaying_program(self) -> str:
        """Return the program between the shell and its terminal that start-up files ran, or ""."""
        return ""

    def foreground_program(self) -> str:
        """Return the program that holds the terminal, with its arguments, or ""."""
        return ""

    def full_screen_program(self) -> tuple[str, int] | None:
        """Return the full-screen program that holds the terminal, and its process id.

        The id is 0 where other shells cannot see it.
        """
        return None

    def take_idle_output(self) -> bytes:
        """Take the output of background jobs while no command ran."""
        return self._idle.take(final=True).data

    def recover(self) -> bool:
        """Make a shell continue that waits without a report; return whether it does."""
        return False

    @abstractmethod
    def start(self, launch: Launch) -> Command:
        """Start the shell; return a command that is done when it is ready."""

    @abstractmethod
    def run(
        self,
        text: str,
        exports: Mapping[str, str],
        status: int | None = None,
        setup: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        script: bool = False,
    ) -> Command:
        """Run a command after hidden ``setup`` lines, with ``status`` as the last exit status.

        ``exports`` stay set, ``variables`` are only for this command. A ``script`` may have several
        top-level commands.
        """

    @abstractmethod
    def type_line(self, text: str) -> None:
        """Type a line to the running command."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Send the characters of a key to the running command."""

    @abstractmethod
    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key at the prompt; return an empty command that waits for the shell."""

    @abstractmethod
    def read_now(self) -> None:
        """Process all output that has arrived."""

    @abstractmethod
    async def end(self) -> None:
        """Stop the shell and all its processes."""


@dataclass(frozen=True)
class Dialect:
    """Properties of a shell."""

    name: str
    # Creates a driver; it imports modules of one platform only when called.
    driver: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], ShellDriver]
    # From a PATH, the command lines to try in order; empty if the shell is not installed.
    command_lines: Callable[[str | None], list[list[str]]]
    # Splits a text into top-level commands; a shell with its own parser uses ``Report.refused``.
    split: Callable[[str], list[str]] = lambda command: [command]
    # The delimiter of an unfinished here-document, or "".
    open_here_document: Callable[[str], str] = lambda command: ""
    displayed: Callable[[str], str] = str  # value of ``extras.command``
    # Lines for ``setup`` that write the exported variables to a file, as NAME=VALUE and NUL each,
    # then END_OF_VARIABLES.
    write_variables: Callable[[str], str] | None = None
    # Lines for ``setup`` that change the directory and remove variables.
    restore: Callable[[str, Iterable[str]], str] | None = None
    # A command after which the terminal passes output on unchanged; "" without a terminal.
    unchanged_output: str = ""
    # Wraps a command: its programs have no input and do not write to the terminal.
    without_terminal: Callable[[str], str] = str
    variables: Mapping[str, str] = field(default_factory=dict)
