"""What the contract asks of a shell: the seam between ``session.py`` and the shells.

A *driver* is one process of a shell: it runs one command after the other and tells when each
ends. A *dialect* is everything else that differs between the shells, as plain data.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oh_jupyter.process import Child
from oh_jupyter.shell.command import Command
from oh_jupyter.shell.output.buffer import OutputBuffer

__all__ = ["Dialect", "ShellDriver"]


class ShellDriver(ABC):
    """One process of a shell, without contract and time limits.

    Attributes:
        child: The process.
        command: The command that was given last, whether it has ended or not.
        exit_code: Status of the shell itself once it has ended and all was read; else None.
        last_change: Time of the loop when anything arrived last.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> None:
        """Prepare a shell that is not started.

        Args:
            loop: Event loop to work on.
            on_change: Called when a command may be done, or the shell may have ended.
        """
        self._loop = loop
        self._on_change = on_change
        self._token = "oh_" + secrets.token_hex(8)
        self._ids = itertools.count(1)
        self._idle = OutputBuffer()
        self.command: Command | None = None
        self.exit_code: int | None = None
        self.last_change = loop.time()
        self.child: Child

    @property
    def running(self) -> bool:
        """Whether a command runs."""
        return self.command is not None and not self.command.done

    def take_idle_output(self) -> bytes:
        """Take what background jobs have printed while no command ran.

        Returns:
            The bytes.
        """
        return self._idle.take(final=True).data

    def recover(self) -> bool:
        """Find out whether the shell waits for input although the command is not done.

        Returns:
            Whether that was so, and the shell was asked to go on.
        """
        return False

    @abstractmethod
    def start(self, argv: list[str], cwd: str, env: Mapping[str, str], user: str | None) -> Command:
        """Start the shell and prepare it.

        Args:
            argv: The program with its options.
            cwd: Working directory.
            env: The whole environment.
            user: User to run as, if not ours.

        Returns:
            A command that is done when the shell is ready.

        Raises:
            ChildStartError: The shell does not start.
        """

    @abstractmethod
    def run(self, text: str, exports: Mapping[str, str], status: int | None = None) -> Command:
        """Give the shell a command. The one before must be done.

        Args:
            text: The command.
            exports: Environment variables to set before.
            status: What the command finds as the exit status of the one before it, if not the
                real one.

        Returns:
            The command, which becomes done later.
        """

    @abstractmethod
    def type_line(self, text: str) -> None:
        """Type a line to the command that runs.

        Args:
            text: The line without its end; the newlines in it are typed as such.
        """

    @abstractmethod
    def press(self, key: str) -> None:
        """Press a control key in the command that runs.

        Args:
            key: The character that the key sends.
        """

    @abstractmethod
    def press_at_prompt(self, key: str, exports: Mapping[str, str]) -> Command:
        """Press a control key while no command runs.

        Args:
            key: The character that the key sends.
            exports: Environment variables to set.

        Returns:
            An empty command, which is done when the shell is ready again, or has ended.
        """

    @abstractmethod
    def read_now(self) -> None:
        """Take in all that has arrived, before something is decided on it."""

    @abstractmethod
    async def end(self) -> None:
        """End the shell and all that it started."""


@dataclass(frozen=True)
class Dialect:
    """What is special about a shell.

    Attributes:
        name: Its name in messages.
        driver: Makes a driver, which is not started. What only its system has is imported here.
        launches: From a PATH, the command lines to try one after the other; empty if the shell is
            not there.
        split: Splits a text into its top-level commands. A shell that does this itself when it
            gets the command returns the text as one, and answers with ``Report.refused``.
        displayed: Writes a command as ``extras.command`` has it.
        variables: Environment variables that every such shell gets.
    """

    name: str
    driver: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], ShellDriver]
    launches: Callable[[str | None], list[list[str]]]
    split: Callable[[str], list[str]]
    displayed: Callable[[str], str]
    variables: Mapping[str, str] = field(default_factory=dict)
