"""The example's test in an environment that has its harness, where this one has not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mini-swe-agent", "pytest", "pytest-timeout", "pytest-jupyter")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.skipif(
    importlib.util.find_spec("minisweagent") is not None,
    reason="the harness is here already",
)
def test_with_the_harness(tmp_path: Path) -> None:
    """An environment made for it runs the other tests."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", str(ROOT), *PACKAGES]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the harness cannot be installed here: {installed.stderr[-300:]}")
    subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).parent)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
