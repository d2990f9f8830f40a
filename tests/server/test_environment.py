"""Tests with packages that share documents, in environments that have them, where this has not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("module", "package", "tests"),
    [
        (
            "jupyter_server_ydoc",
            "jupyter-collaboration>=4",
            ["test_collaboration.py", "test_mcp_notebooks.py::TestLive"],
        ),
        (
            "jupyter_server_documents",
            "jupyter-server-documents>=0.3.3",
            ["test_server_documents.py", "test_mcp_notebooks.py::TestLiveOnServerDocuments"],
        ),
    ],
)
def test_with_documents_that_are_shared(
    module: str, package: str, tests: list[str], tmp_path: Path
) -> None:
    """An environment made for it runs the tests that are skipped without the package."""
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is here already")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", f"{ROOT}[test]", package],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"{package} cannot be installed: {installed.stderr[-300:]}")
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(FOLDER / t) for t in tests)],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "skipped" not in ran.stdout
