"""PowerShell on pipes, for Windows, where it has not been run yet.

Tests on Linux cover the part shared with bash, the pipes with a stand-in program, and ``script.py``
with a grammar of PowerShell and a real ``pwsh`` if there is one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import ClassVar

from oh_jupyter.installed import find_program
from oh_jupyter.shell.driver import NO_EDITOR, Dialect, ShellDriver
from oh_jupyter.shell.session import ShellSession

__all__ = ["POWERSHELL", "PowerShellSession"]

PROGRAMS = ("pwsh", "powershell")
"""PowerShell 7, and Windows PowerShell."""
OPTIONS = ["-NoLogo", "-File", "-"]


def _driver(loop: asyncio.AbstractEventLoop, on_change: Callable[[], None]) -> ShellDriver:
    from oh_jupyter.shell.powershell.process import PowerShell

    return PowerShell(loop, on_change)


def _command_lines(search_path: str | None) -> list[list[str]]:
    """Return the command lines to try: with the user's profile, then without."""
    for program in PROGRAMS:
        path = find_program(program, search_path)
        if path is not None:
            return [[path, *OPTIONS], [path, "-NoProfile", *OPTIONS]]
    return []


POWERSHELL = Dialect(
    name="PowerShell",
    driver=_driver,
    command_lines=_command_lines,
    variables={
        "GIT_PAGER": "cat",
        **NO_EDITOR,
        "NO_COLOR": "1",
        "POWERSHELL_UPDATECHECK": "Off",
        # By default, Python writes to a pipe in an old code page.
        "PYTHONIOENCODING": "utf-8",
        **({"PAGER": "cat", "TERM": "xterm-256color"} if os.name == "posix" else {}),
    },
)


class PowerShellSession(ShellSession):
    """A persistent PowerShell; see :class:`~oh_jupyter.shell.session.ShellSession`.

    It uses ``pwsh`` if installed, otherwise Windows PowerShell. Its own parser rejects several
    commands at once; while a command runs, the reply is that it is still running. Without a
    terminal, Ctrl-C and Ctrl-D are the only control keys.
    """

    dialect: ClassVar[Dialect] = POWERSHELL
