"""A user's program that stays open and changes files on command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, subprocess, sys

def remove_link(path):
    if os.path.islink(path):
        os.remove(path)

for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class OtherProgram:
    """A process that executes Python statements in a folder."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def do(self, statement: str) -> None:
        """Execute a statement, and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(statement, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def close(self) -> None:
        self._process.communicate("")
