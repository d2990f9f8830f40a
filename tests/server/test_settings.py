"""Settings that cannot be used: the server says so, and answers."""

from __future__ import annotations

from pathlib import Path

import requests

from oh_jupyter.testing import run_server


def test_a_server_with_a_wrong_setting_starts_answers_and_ends(tmp_path: Path) -> None:
    environment = {"OH_JUPYTER_CONFIRMATION": "sometimes"}
    with run_server(tmp_path, environment=environment) as server:
        answer = requests.get(
            f"{server.url}/oh_jupyter/requests/unknown", headers=server.headers, timeout=60
        )
        assert answer.status_code == 404
    said = "environment variable OH_JUPYTER_CONFIRMATION must be one of never, risky, always"
    assert said in "".join(server.log)
