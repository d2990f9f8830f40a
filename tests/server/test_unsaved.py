"""Windows are asked to save what people typed before agents read; a silent one only once."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.agents import GuestAgents
from oh_jupyter.config import Settings
from oh_jupyter.kernel.own_server import OwnServer
from oh_jupyter.runtime import Runtime
from oh_jupyter.server import unsaved
from oh_jupyter.server.state import state_of
from oh_jupyter.server.unsaved import DOCUMENTS_EVENT, UnsavedDocuments


class Events:
    """An event logger with one listener, which is called at once."""

    def __init__(self) -> None:
        self.emitted: list[dict[str, Any]] = []
        self.listener: Callable[[dict[str, Any]], None] = lambda data: None

    def register_event_schema(self, schema: dict[str, Any]) -> None:
        assert schema["$id"] == DOCUMENTS_EVENT

    def emit(self, *, schema_id: str, data: dict[str, Any]) -> None:
        self.emitted.append(data)
        self.listener(data)

    @property
    def actions(self) -> list[str]:
        return [data["action"] for data in self.emitted]


def test_no_requests_without_unsaved_documents() -> None:
    events = Events()
    documents = UnsavedDocuments(events)
    documents.report("window", frozenset({"a.ipynb"}))
    documents.report("window", frozenset())
    asyncio.run(documents.save())
    assert events.emitted == []


def test_a_window_saves_before_an_agent_reads_and_looks_afterwards() -> None:
    events = Events()
    documents = UnsavedDocuments(events)
    documents.report("window", frozenset({"a.ipynb"}))
    assert documents.paths == {"a.ipynb"}
    events.listener = lambda data: documents.report("window", frozenset(), data.get("request"))

    async def agent() -> None:
        async with documents.shared():
            assert events.actions == ["save"]
            assert documents.paths == frozenset()

    asyncio.run(agent())
    assert events.actions == ["save", "changed"]


def test_a_report_that_is_no_answer_ends_no_wait() -> None:
    events = Events()
    documents = UnsavedDocuments(events)
    documents.report("window", frozenset({"a.ipynb"}))

    async def agent() -> None:
        saving = asyncio.create_task(documents.save())
        while not events.emitted:
            await asyncio.sleep(0)
        documents.report("window", frozenset({"a.ipynb", "b.py"}))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not saving.done()
        documents.report("window", frozenset({"b.py"}), events.emitted[0]["request"])
        await saving

    asyncio.run(agent())


def test_a_window_that_does_not_answer_is_waited_for_once(monkeypatch) -> None:
    monkeypatch.setattr(unsaved, "SAVE_TIMEOUT_SECONDS", 0.01)
    events = Events()
    documents = UnsavedDocuments(events)
    documents.report("window", frozenset({"a.ipynb"}))
    asyncio.run(documents.save())
    asyncio.run(documents.save())
    assert events.actions == ["save"]
    assert documents.paths == {"a.ipynb"}
    documents.report("window", frozenset({"a.ipynb", "b.py"}))
    asyncio.run(documents.save())
    assert events.actions == ["save", "save"]


@pytest.mark.thorough
async def test_a_guest_of_the_kernel_reads_typed_text(
    jp_serverapp, mcp_url, jp_auth_header, plain_kernel, tmp_path
) -> None:
    """By the file requests of its own protocol, as by our tools."""
    notes = tmp_path / "notes.txt"
    notes.write_text("old")
    documents = state_of(jp_serverapp.web_app.settings).unsaved
    documents.report("window", frozenset({"notes.txt"}))

    async def window(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] == "save":
            notes.write_text("just typed")
            documents.report("window", frozenset(), data["request"])

    jp_serverapp.event_logger.add_listener(schema_id=DOCUMENTS_EVENT, listener=window)
    script = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
    agents = {"scripted": shlex.join([sys.executable, str(script)])}
    runtime = Runtime(
        Settings(
            workspace_dir=str(tmp_path), file_store="memory", confirmation="never", agents=agents
        )
    )
    token = jp_auth_header["Authorization"].removeprefix("token ")
    server = OwnServer(f"{mcp_url}/kernels/{plain_kernel}", token)

    class Tools:
        instructions = ""
        save_documents = staticmethod(server.save_tabs)

        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def changed(self) -> None:
            await asyncio.Event().wait()

    async def prompt() -> Any:
        guests = GuestAgents(runtime.executor, lambda guest: Tools())
        turn = await guests.prompt("read notes.txt", "scripted")
        await guests.stop()
        return turn

    try:
        turn = await asyncio.wrap_future(runtime.submit(prompt()))
    finally:
        runtime.close()
        jp_serverapp.event_logger.remove_listener(listener=window)
    assert turn.steps[0].output == "just typed"
