"""The output of ``connect jupyter-ai``, read by Jupyter AI itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.testing import run_server

models = pytest.importorskip(
    "jupyter_ai_persona_manager.mcp_server_models", reason="needs Jupyter AI, see scripts/check"
)


def test_jupyter_ai_reads_the_entry(place: Any, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with run_server(tmp_path / "server") as server:
        address = ("--url", server.url, "--token", server.token)
        for options, kind in (((), "McpServerStdio"), (address, "McpServerHttp")):
            place.written("jupyter-ai", *options)
            file = place.project / ".jupyter" / "mcp_settings.json"
            (entry,) = models.McpSettings(**json.loads(file.read_text())).mcp_servers
            assert (entry.name, type(entry).__name__) == ("oh-jupyter", kind)
