"""The registry of agents, served by a local HTTP server in the registry's format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from oh_jupyter.agents import registry
from oh_jupyter.agents.commands import known_agents
from oh_jupyter.state.shared import open_ledger


def entry(name: str, **distribution: object) -> dict[str, object]:
    about = {"id": name, "name": name.title(), "version": "1.0.0", "description": "An agent"}
    return {**about, "website": f"https://example.org/{name}", "distribution": distribution}


AGENTS = [
    entry("npm-agent", npx={"package": "@acme/npm-agent@1.2.3", "args": ["--acp"]}),
    entry("py-agent", uvx={"package": "py-agent==1.0", "args": ["acp"]}),
    entry("bin-agent", binary={"linux-x86_64": {"archive": "https://x", "cmd": "./bin/agent"}}),
    entry("codex-acp", npx={"package": "@zed-industries/codex-acp@0.16.0"}),
    {"id": 5},
    entry("no-way"),
    "nonsense",
]


class Registry:
    """A server of one file."""

    def __init__(self) -> None:
        self.requests = 0
        self.body = json.dumps({"version": "1.0.0", "agents": AGENTS}).encode()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.requests += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(served.body)

            def log_message(self, *arguments: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/registry.json"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = Registry()
    yield server
    server.close()


def test_agents_are_fetched_once_a_day(served: Registry, monkeypatch) -> None:
    agents = registry.fetch_agents(served.url)
    assert [(each.name, each.command, each.installation) for each in agents] == [
        ("npm-agent", ("npm-agent", "--acp"), "npm install -g @acme/npm-agent"),
        ("py-agent", ("py-agent", "acp"), "uv tool install py-agent"),
        ("bin-agent", ("agent",), "see https://example.org/bin-agent"),
        ("codex-acp", ("codex-acp",), "npm install -g @zed-industries/codex-acp"),
    ]
    assert registry.fetch_agents(served.url) == agents == registry.cached_agents()
    assert served.requests == 1
    monkeypatch.setattr(registry, "FRESH_SECONDS", 0)
    registry.fetch_agents(served.url)
    assert served.requests == 2


def test_offline_the_cache_is_used_silently(served: Registry, monkeypatch, caplog) -> None:
    agents = registry.fetch_agents(served.url)
    served.close()
    monkeypatch.setattr(registry, "FRESH_SECONDS", 0)
    assert registry.fetch_agents(served.url) == agents
    assert not caplog.records


def test_without_a_ledger_the_registry_is_fetched_each_time(served: Registry) -> None:
    path = open_ledger().path
    assert path is not None
    path.mkdir(parents=True)
    agents = registry.fetch_agents(served.url)
    assert len(agents) == 4
    assert registry.fetch_agents(served.url) == agents
    assert served.requests == 2
    assert registry.cached_agents() == []


def test_only_the_last_registry_is_cached(served: Registry) -> None:
    registry.fetch_agents(served.url)
    served.body = json.dumps({"agents": AGENTS[:1]}).encode()
    (agent,) = registry.fetch_agents(f"{served.url}?other")
    assert registry.cached_agents() == [agent]


def test_a_registry_that_was_never_reached_is_not_tried_each_time(served: Registry) -> None:
    served.body = b"<html>"
    assert registry.fetch_agents(served.url) == registry.fetch_agents(served.url) == []
    assert served.requests == 1


def test_a_registry_that_is_too_large(served: Registry, monkeypatch) -> None:
    monkeypatch.setattr(registry, "MAX_BYTES", 10)
    assert registry.fetch_agents(served.url) == []


def test_no_registry(served: Registry) -> None:
    assert registry.fetch_agents("") == []
    assert not open_ledger().exists()


@pytest.mark.skipif(os.name == "nt", reason="a script without an extension")
def test_installed_agents_are_available(served: Registry, tmp_path, monkeypatch) -> None:
    program = tmp_path / "npm-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    known = known_agents({}, registry.fetch_agents(served.url))
    assert known["npm-agent"].command == ("npm-agent", "--acp")
    assert not {"py-agent", "bin-agent", "codex-acp"} & known.keys()
