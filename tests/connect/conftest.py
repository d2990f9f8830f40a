"""Clients that the tests of other rooms have, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

COMMAND = "from oh_jupyter.cli import main; raise SystemExit(main())"
MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Place:
    """A home, and a project in which the command is run."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()
        unwanted = (*MOVING, "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "OH_URL", "OH_TOKEN")
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.environment = {**kept, "HOME": str(self.home)}

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "connect", *arguments],
            env={**self.environment, **more},
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr
        return done

    def written(self, *arguments: str, **more: str) -> str:
        done = self.run(*arguments, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str, **more: str) -> str:
        done = self.run(*arguments, **more)
        assert done.returncode == 1
        assert not done.stdout
        assert done.stderr.startswith("oh-jupyter: ")
        assert done.stderr.count("\n") == 1, "one line"
        return done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
