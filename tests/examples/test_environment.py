"""The examples' tests in an environment that has the harnesses, where this one has not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mini-swe-agent", "inspect-ai", "pytest", "pytest-timeout", "pytest-jupyter")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.skipif(
    all(importlib.util.find_spec(package) for package in ("minisweagent", "inspect_ai")),
    reason="the harnesses are here already",
)
def test_with_the_harnesses(tmp_path: Path) -> None:
    """An environment made for them runs the other tests."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", str(ROOT), *PACKAGES]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the harnesses cannot be installed here: {installed.stderr[-300:]}")
    subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).parent)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
