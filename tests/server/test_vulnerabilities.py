"""A server beside a release with a known vulnerability warns of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from oh_jupyter.testing import run_server


@pytest.mark.thorough
def test_a_server_warns_at_its_start(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Not below the server's directory, where nothing is taken for an installed package.
    old = tmp_path_factory.mktemp("site") / "pillow-10.3.0.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: pillow\nVersion: 10.3.0\n")
    environment = {"PYTHONPATH": str(old.parent)}
    with run_server(tmp_path, environment=environment) as server:
        requests.get(f"{server.url}/api/status", headers=server.headers, timeout=60)
    log = "".join(server.log)
    assert "pillow 10.3.0 has a known vulnerability (CVE-2026-25990" in log
    assert "Run: pip install 'pillow>=12.1.1'" in log
