"""The package is imported where POSIX modules are missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys

import pytest

# psutil has another implementation for each system; this one's needs ``resource``.
BLOCKER = """
import sys
import psutil

MISSING = {"pwd", "grp", "fcntl", "termios", "tty", "pty", "resource", "readline", "curses"}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocker())
"""


def python(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER + text], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    ["", ".process", ".shell", ".runtime", ".runtime.resources", ".kernel.extension", ".browser"],
)
def test_import(module: str) -> None:
    assert python(f"import oh_jupyter{module}; print('done')") == "done"


def test_windows_gets_powershell() -> None:
    # The name of the system decides; nothing of it is needed to describe a session.
    text = """
import asyncio, os
from oh_jupyter.config import Settings
from oh_jupyter.runtime.resources import make_shell

async def main():
    directory = os.getcwd()
    names = []
    for name in ("nt", "posix"):
        os.name = name
        try:
            names.append(type(make_shell(Settings(), directory)).__name__)
        finally:
            os.name = "posix"
    print(*names)

asyncio.run(main())
"""
    assert python(text) == "PowerShellSession BashSession"
