"""The seam between ``session.py`` and the shells: a driver is one process, a dialect plain data."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from oh_jupyter.process import Child
from oh_jupyter.shell.output import Marker, MarkerParser, OutputBuffer

INTERRUPT = "\x03"
"""What Ctrl-C sends."""
END_OF_INPUT = "\x04"
"""What Ctrl-D sends."""


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
    """Translate the name of a control key: ``C-c``, ``CTRL+C`` or ``CTRL-C``."""
    match = _CONTROL_KEY.fullmatch(command)
    if match is None:
        return None
    key = (match[1] or match[2]).upper()
    if key == "?":
        return "\x7f"
    return chr(ord(key) & 0x1F) if "@" <= key <= "_" else None


def key_sequence(text: str) -> str | None:
    """Return what a key sends whose name is an input; other keys than control keys in capitals."""
    return _NAMED_KEYS.get(text) or control_character(text)


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
    typed: bool = False  # it was given input
    dropped_input: bool = False  # it ended before it had read all of that
    killed_at_bytes: int | None = None  # memory that it used when it was killed for that
    cancelled: bool = False  # interrupted, because whoever asked for it went away

    @property
    def done(self) -> bool:
        """Whether it has ended and all of its output is there."""
        return self.closed and self.report is not None


@dataclass(frozen=True)
class Launch:
    """How a shell is started."""

    argv: list[str]
    cwd: str
    env: Mapping[str, str]
    user: str | None
    path_directory: str | None  # comes first on its PATH, after the start-up files


class ShellDriver(ABC):
    """One process of a shell, without contract and time limits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        """Prepare a shell that is not started."""
        self._loop = loop
        self._on_change = on_change
        self._token = "oh_" + secrets.token_hex(8)
        self._markers = MarkerParser(self._token)
        self._ids = itertools.count(1)
        self._idle = OutputBuffer()
        self.command: Command | None = None  # the last one, whether it has ended or not
        self.exit_code: int | None = None  # the shell's own, once all was read
        self.last_change = loop.time()
        self.child: Child

    @property
    def running(self) -> bool:
        """Whether a command runs."""
        return self.command is not None and not self.command.done

    def _new_command(self, text: str) -> Command:
        self.command = Command(str(next(self._ids)), text, self._token)
        return self.command

    def _split_output(self, data: bytes) -> None:
        """Hand on what the shell wrote: output, and markers in it."""
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
        """Put output where it belongs."""

    def take_idle_output(self) -> bytes:
        """Take what background jobs have printed while no command ran."""
        return self._idle.take(final=True).data

    def recover(self) -> bool:
        """Tell whether the shell waits although its command is not done, and make it go on."""
        return False

    @abstractmethod
    def start(self, launch: Launch) -> Command:
        """Start the shell; the command is done when it is ready (ChildStartError)."""

    @abstractmethod
    def run(
        self, text: str, exports: Mapping[str, str], status: int | None = None, setup: str = ""
    ) -> Command:
        """Give the shell a command, after unseen lines of ``setup`` and an exit ``status``."""

    @abstractmethod
    def type_line(self, text: str) -> None:
        """Type a line to the command that runs."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Press a key, by what it sends, in the command that runs."""

    @abstractmethod
    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key at the prompt; the empty command is done when the shell is ready."""

    @abstractmethod
    def read_now(self) -> None:
        """Take in all that has arrived, before something is decided on it."""

    @abstractmethod
    async def end(self) -> None:
        """End the shell and all that it started."""


@dataclass(frozen=True)
class Dialect:
    """What is special about a shell."""

    name: str
    # What only its system has is imported when a driver is made.
    driver: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], ShellDriver]
    # From a PATH, what to try one after the other; empty if the shell is not there.
    command_lines: Callable[[str | None], list[list[str]]]
    # Into top-level commands; a shell that splits itself answers with ``Report.refused``.
    split: Callable[[str], list[str]] = lambda command: [command]
    # The word that ends a here-document which a text leaves open, or "".
    open_here_document: Callable[[str], str] = lambda command: ""
    displayed: Callable[[str], str] = str  # as ``extras.command`` has it
    # Lines for ``setup`` that write the exported variables to a file, NAME=VALUE and a NUL each,
    # and END_OF_VARIABLES.
    write_variables: Callable[[str], str] | None = None
    # Lines for ``setup`` that go to a directory, and remove variables.
    go_back: Callable[[str, Iterable[str]], str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
