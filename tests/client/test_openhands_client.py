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
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from urllib3 import Retry

PYTHON = os.environ.get("OH_JUPYTER_TEST_OPENHANDS", "")
HERE = Path(__file__).parent
TOKEN, SESSION_KEY = "a-token", "a-session-key"
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
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("openhands")
    (place / "root").mkdir()
    return {
        **os.environ,
        "HOME": str(place),
        "JUPYTER_CONFIG_DIR": str(place / "config"),
        "JUPYTER_RUNTIME_DIR": str(place / "run"),
        "SESSION_API_KEY": SESSION_KEY,
    }


@pytest.fixture(scope="module")
def url(environment: dict[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
         "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}",
         "--ServerApp.jpserver_extensions={'oh_jupyter': True}",
         f"--ServerApp.root_dir={environment['HOME']}/root",
         "--OhJupyter.confirmation_over_rest=True"],
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stderr is not None
    found = None
    for line in process.stderr:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/", line):
            break
    assert found is not None
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    drain.start()
    with requests.Session() as session:  # its address is in the log before it listens there
        retries = Retry(connect=20, backoff_factor=0.05)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        headers = {"Authorization": f"token {TOKEN}"}
        session.get(f"{found[1]}/oh_jupyter/alive", headers=headers, timeout=60).raise_for_status()
    yield f"{found[1]}/oh_jupyter"
    process.terminate()
    process.wait(30)
    drain.join()
    process.stderr.close()


@pytest.fixture(scope="module")
def results(url: str, environment: dict[str, str]) -> dict[str, str | None]:
    """A traceback, or None, for each check."""
    place = Path(environment["HOME"]) / "place"
    place.mkdir()
    written = place.parent / "results.json"
    command = json.dumps([sys.executable, str(HERE.parent / "stdio_server.py")])
    subprocess.run(
        [PYTHON, str(HERE / "openhands_checks.py"), url, TOKEN, str(place), command, str(written)],
        env={
            **environment,
            "OH_URL": url,
            "OH_TOKEN": TOKEN,
            "PYTHONPATH": str(HERE.parents[1] / "examples"),
        },
        cwd=place,
        timeout=600,
        check=True,
    )
    found: dict[str, str | None] = json.loads(written.read_text())
    return found


@pytest.mark.parametrize("name", CHECKS)
def test_openhands(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None, results[name]
