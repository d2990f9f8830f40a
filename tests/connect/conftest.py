"""Clients that the tests of other rooms have, too."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from oh_jupyter.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Place:
    """A home, and a project in which the command is run."""

    def __init__(self, root: Path) -> None:
        self.home, self.project, self.state = root / "home", root / "project", root / "state"
        self.home.mkdir()
        self.project.mkdir()
        unwanted = (*MOVING, "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "OH_URL", "OH_TOKEN")
        base = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.environment = {
            **base,
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.state),
        }

    def run(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        """Exit status, output and errors of ``oh-jupyter connect``."""
        out, errors = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, {**self.environment, **more}, clear=True),
            contextlib.chdir(self.project),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            status = main(["connect", *arguments])
        return status, out.getvalue(), errors.getvalue()

    def written(self, *arguments: str, **more: str) -> str:
        status, out, errors = self.run(*arguments, **more)
        assert status == 0, errors
        return out

    def refused(self, *arguments: str, **more: str) -> str:
        status, out, errors = self.run(*arguments, **more)
        assert (status, out) == (1, "")
        assert errors.startswith("oh-jupyter: ")
        assert errors.count("\n") == 1, "one line"
        return errors


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
