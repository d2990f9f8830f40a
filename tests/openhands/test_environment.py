"""These tests in an environment that has the SDK, where this one has not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

VARIABLE = "OH_JUPYTER_TEST_OPENHANDS_SDK"
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.skipif(
    not os.environ.get(VARIABLE) or importlib.util.find_spec("openhands") is not None,
    reason=f"{VARIABLE} names no Python 3.12, or the SDK is here already",
)
def test_with_another_python(tmp_path: Path) -> None:
    """That Python, or an environment made with it where it has no SDK, runs the other tests."""
    python = os.environ[VARIABLE]
    if subprocess.run([python, "-c", "import openhands.sdk, oh_jupyter"], check=False).returncode:
        subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
        python = str(tmp_path / "venv" / "bin" / "python")
        packages = [f"{ROOT}[agents,openhands]", "pytest", "pytest-timeout", "pytest-jupyter"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    tests = str(Path(__file__).parent)
    subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests],
        check=True,
        cwd=ROOT,
        env=environment,
    )
