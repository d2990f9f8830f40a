"""Settings that cannot be used: the server says so, and answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

from oh_jupyter.testing import run_server


def test_a_server_with_a_wrong_setting_starts_answers_and_ends(tmp_path: Path) -> None:
    environment = {"OH_JUPYTER_CONFIRMATION": "sometimes"}
    with run_server(tmp_path, environment=environment) as server:
        answer = requests.get(
            f"{server.url}/oh_jupyter/requests/unknown", headers=server.headers, timeout=60
        )
        assert answer.status_code == 404
    message = "environment variable OH_JUPYTER_CONFIRMATION must be one of never, risky, always"
    assert message in "".join(server.log)


@pytest.mark.thorough
@pytest.mark.parametrize(("value", "is_allowed"), [("off", False), ("on", True)])
def test_the_administrators_policy_decides_on_approvals(
    tmp_path: Path, value: str, is_allowed: bool
) -> None:
    environment = {"OH_JUPYTER_POLICY": json.dumps({"approvals_over_rest": value})}
    option = f"--OhJupyter.confirmation_over_rest={not is_allowed}"
    with run_server(tmp_path, option, environment=environment) as server:
        kernels, session = f"{server.url}/api/kernels", requests.Session()
        session.headers.update(server.headers)
        kernel = session.post(kernels, json={}, timeout=60).json()["id"]
        address = f"{server.url}/oh_jupyter/kernels/{kernel}"
        session.get(f"{address}/checkpoints", timeout=60).raise_for_status()
        response = session.post(f"{address}/confirmations/1", json={"approve": True}, timeout=60)
        assert response.status_code == (404 if is_allowed else 403)
