"""MCP's own conformance suite, as far as it needs no tools of its own in the server."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from oh_jupyter.testing import LiveServer

SUITE = (
    *("npm", "exec", "--yes", "--package=node@22", "--package=@modelcontextprotocol/conformance"),
    *("--", "conformance"),
)
NEEDS = "needs npm and its registry, for @modelcontextprotocol/conformance"


@pytest.fixture(scope="module")
def suite() -> None:
    """Install the suite, or skip."""
    command = [*SUITE, "--version"]
    if not shutil.which("npm") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip(NEEDS)


@pytest.mark.slow
@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    "scenario",
    [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ],
)
def test_a_scenario_passes(live_server: LiveServer, scenario: str) -> None:
    address = f"{live_server.url}/oh_jupyter/mcp?token={live_server.token}"
    command = [*SUITE, "server", "--url", address, "--scenario", scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed, 0 warnings" in done.stdout
