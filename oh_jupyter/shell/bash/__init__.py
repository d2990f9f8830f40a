"""Bash on a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import ClassVar

from oh_jupyter.errors import ShellError
from oh_jupyter.installed import find_program
from oh_jupyter.shell.bash.bash_integration import restore_lines, variables_lines
from oh_jupyter.shell.bash.parsing import (
    displayed_command,
    open_here_document,
    split_commands,
)
from oh_jupyter.shell.driver import NO_EDITOR, Dialect, ShellDriver
from oh_jupyter.shell.session import ShellSession

__all__ = ["BASH", "BashSession"]


def _driver(loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> ShellDriver:
    if os.name != "posix":
        raise ShellError(
            "BashSession needs pseudo-terminals, which this system lacks: use PowerShellSession."
        )
    from oh_jupyter.shell.bash.process import Bash

    return Bash(loop, on_change)


def _command_lines(search_path: str | None) -> list[list[str]]:
    """Return the command lines to try: with the user's start-up files, then without."""
    path = find_program("bash", search_path)
    return [] if path is None else [[path, "-i"], [path, "--norc", "-i"]]


_WITHOUT_TERMINAL = """(
(
export TERM=dumb
{command}
) </dev/null > >(exec cat) 2>&1
code=$? reader=$!
(sleep 1; kill $reader) &
timer=$!
wait $reader
kill $timer
exit $code
) 2>/dev/null"""
"""A command whose output goes through a pipe, without waiting for what it leaves running."""


def _without_terminal(command: str) -> str:
    return _WITHOUT_TERMINAL.replace("{command}", command)


BASH = Dialect(
    name="bash",
    driver=_driver,
    command_lines=_command_lines,
    split=split_commands,
    open_here_document=open_here_document,
    displayed=displayed_command,
    write_variables=variables_lines,
    restore=restore_lines,
    unchanged_output="stty -opost",
    without_terminal=_without_terminal,
    # A pager would wait for a key press.
    variables={"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat", **NO_EDITOR},
)


class BashSession(ShellSession):
    """A persistent bash on a pseudo-terminal; see ``ShellSession``."""

    dialect: ClassVar[Dialect] = BASH
