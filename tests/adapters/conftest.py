"""One server for the adapters; their frameworks are in an environment beside the main one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from oh_jupyter.client import RuntimeClient
from oh_jupyter.events import Action, CmdRunAction
from oh_jupyter.testing import LiveServer, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with run_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: LiveServer) -> Iterator[RuntimeClient]:
    with RuntimeClient(server.url, server.token) as client:
        yield client


@pytest.fixture
def logged(client: RuntimeClient) -> Callable[[], list[tuple[str, str]]]:
    """Return a function that lists framework and command of each Action since the last call."""
    seen = len(client.history(limit=1_000_000))

    def new() -> list[tuple[str, str]]:
        nonlocal seen
        events = client.history(seen, limit=1_000_000)
        seen += len(events)
        return [
            (event.actor.client, event.title or event.command)
            if isinstance(event, CmdRunAction)
            else (event.actor.client, event.message)
            for event in events
            if isinstance(event, Action)
        ]

    return new


@pytest.fixture
def server_in_environment(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_URL", server.url)
    monkeypatch.setenv("OH_TOKEN", server.token)
