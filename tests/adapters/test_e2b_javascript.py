"""E2B's client for JavaScript, unmodified, on a notebook's kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from oh_jupyter.testing import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("e2b_client.mjs")


def test_the_client_runs_cells(server: LiveServer, tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("needs npm and node")
    install = [npm, "install", "--no-audit", "--no-fund", "@e2b/code-interpreter"]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the client cannot be installed here: {installed.stderr[-300:]}")
    program = shutil.copy(PROGRAM, tmp_path)
    address = f"{server.url}/oh_jupyter/e2b"
    variables = {"E2B_API_URL": address, "E2B_SANDBOX_URL": address, "E2B_API_KEY": server.token}
    done = subprocess.run(
        [node, program],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "lines": ["out\n"],
        "text": "42",
        "error": "ZeroDivisionError",
        "data": {"a": [1, 2]},
        "contexts": 2,
        "late": "TimeoutError",
        "ended": "1",
    }
