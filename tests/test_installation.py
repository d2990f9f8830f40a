"""``scripts/install``: its messages while pip works, with a pip that waits for the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "install"

PIP = """
import sys
print({step!r}, flush=True)
sys.stdin.readline()
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("step", "message", "failed"),
    [
        ("Collecting numpy", "check the network", "PIP_INDEX_URL"),
        (
            "  Building wheel for oh_jupyter (pyproject.toml): started",
            "building the JupyterLab extension, about 3 minutes",
            "npm's registry",
        ),
    ],
)
def test_a_slow_step_is_named(tmp_path: Path, step: str, message: str, failed: str) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__init__.py").touch()
    (tmp_path / "pip" / "__main__.py").write_text(PIP.format(step=step))
    impatient = SCRIPT.read_text().replace("SILENCE_SECONDS = 30", "SILENCE_SECONDS = 0.1")
    with subprocess.Popen(
        [sys.executable, "-u", "-c", impatient, "."],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if f"still: {step.strip()}" in line)
        assert message in line
        assert ("network" in line) == (message == "check the network")
        _, errors = process.communicate("continue\n")
    assert process.returncode == 1
    assert failed in errors
