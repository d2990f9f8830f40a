"""Tests with jupyter-collaboration, in an environment that has it, where this one has not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TESTS = ("test_collaboration.py", "test_mcp_notebooks.py::TestLive")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    importlib.util.find_spec("jupyter_server_ydoc") is not None, reason="it is here already"
)
def test_with_jupyter_collaboration(tmp_path: Path) -> None:
    """An environment made for it runs the tests that are skipped without it."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    packages = [f"{ROOT}[test]", "jupyter-collaboration>=4"]
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"jupyter-collaboration cannot be installed: {installed.stderr[-300:]}")
    tests = [str(FOLDER / test) for test in TESTS]
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "skipped" not in ran.stdout
