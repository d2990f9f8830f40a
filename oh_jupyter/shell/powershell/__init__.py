"""PowerShell on pipes, for Windows, where nothing of it has been run yet.

What it shares with bash is tested with one on Linux; the pipes against a program that stands for
PowerShell, ``script.py`` by a grammar of PowerShell, and by a real ``pwsh`` where there is one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from typing import ClassVar

from oh_jupyter.shell.driver import Dialect, ShellDriver
from oh_jupyter.shell.session import ShellSession

__all__ = ["POWERSHELL", "PowerShellSession"]

PROGRAMS = ("pwsh", "powershell")
"""PowerShell 7, and the one that is part of Windows."""
OPTIONS = ["-NoLogo", "-File", "-"]


def _driver(loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> ShellDriver:
    from oh_jupyter.shell.powershell.process import PowerShell

    return PowerShell(loop, on_change)


def _command_lines(search_path: str | None) -> list[list[str]]:
    """Try with the user's profile first; it may keep PowerShell from coming up."""
    for program in PROGRAMS:
        path = shutil.which(program, path=search_path)
        if path is not None:
            return [[path, *OPTIONS], [path, "-NoProfile", *OPTIONS]]
    return []


POWERSHELL = Dialect(
    name="PowerShell",
    driver=_driver,
    command_lines=_command_lines,
    variables={
        "GIT_PAGER": "cat",
        "NO_COLOR": "1",
        "POWERSHELL_UPDATECHECK": "Off",
        # Python writes in an old code page to a pipe, unless it is told otherwise.
        "PYTHONIOENCODING": "utf-8",
        **({"PAGER": "cat", "TERM": "xterm-256color"} if os.name == "posix" else {}),
    },
)


class PowerShellSession(ShellSession):
    """A persistent PowerShell; see :class:`~oh_jupyter.shell.session.ShellSession`.

    ``pwsh`` where there is one, else Windows PowerShell. While a command runs, several commands at
    once get the answer that it still runs: its parser, which would refuse them, is busy.
    Ctrl-C and Ctrl-D are the control keys that there are without a terminal.
    """

    dialect: ClassVar[Dialect] = POWERSHELL
