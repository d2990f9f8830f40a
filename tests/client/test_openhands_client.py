"""OpenHands' own client against a real server, and an agent of OpenHands at work through it.

It needs a Python that has ``openhands-ai==0.62.0``, which is 3.12 only and brings 690 packages, so
that it is skipped unless ``OH_JUPYTER_TEST_OPENHANDS`` names one::

    python3.12 -m venv openhands && openhands/bin/pip install openhands-ai==0.62.0
    OH_JUPYTER_TEST_OPENHANDS=openhands/bin/python pytest tests/client/test_openhands_client.py

The checks are in openhands_checks.py and openhands_example_checks.py, run there in one process: it
needs half a minute to start. What they have shown is pinned without OpenHands in
tests/server/test_openhands_contract.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.testing import LiveServer, run_server
from oh_jupyter.testing.server import TOKEN

PYTHON = os.environ.get("OH_JUPYTER_TEST_OPENHANDS", "")
HERE = Path(__file__).parent
SESSION_KEY = "a-session-key"
CHECKS = [
    name
    for script in ("openhands_checks.py", "openhands_example_checks.py")
    for name in re.findall(r"^@check\ndef (\w+)", (HERE / script).read_text(), re.MULTILINE)
]

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="OH_JUPYTER_TEST_OPENHANDS names no Python"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    variables = {"SESSION_API_KEY": SESSION_KEY, "OH_JUPYTER_CONFIRMATION": None}
    directory = tmp_path_factory.mktemp("openhands")
    option = "--OhJupyter.confirmation_over_rest=True"
    with run_server(directory, option, environment=variables) as server:
        yield server


@pytest.fixture(scope="module")
def results(server: LiveServer) -> dict[str, str | None]:
    """A traceback, or None, for each check."""
    directory, url = server.directory / "place", f"{server.url}/oh_jupyter"
    directory.mkdir()
    written = directory.parent / "results.json"
    command = json.dumps([sys.executable, str(HERE.parent / "stdio_server.py")])
    subprocess.run(
        [
            PYTHON,
            str(HERE / "openhands_checks.py"),
            url,
            TOKEN,
            str(directory),
            command,
            str(written),
        ],
        env={
            **os.environ,
            "HOME": str(server.directory),
            "SESSION_API_KEY": SESSION_KEY,
            "OH_URL": url,
            "OH_TOKEN": TOKEN,
            "PYTHONPATH": str(HERE.parents[1] / "examples"),
        },
        cwd=directory,
        timeout=600,
        check=True,
    )
    results: dict[str, str | None] = json.loads(written.read_text())
    return results


@pytest.mark.parametrize("name", CHECKS)
def test_openhands(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None, results[name]
