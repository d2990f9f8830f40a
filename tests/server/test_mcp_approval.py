"""The person at an MCP client is asked about a waiting action, where the client can ask."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Any

import pytest
from mcp import types
from mcp_client import MAJOR

from oh_jupyter.operations.actions import Confirm
from oh_jupyter.server.state import state_of

ASKS = {"OhJupyter": {"confirmation": "always", "approval_by_client": True}}

# A client without a session repeats calls whose result requires input.
TRANSPORTS = ["http", "sse", *(["sessionless"] if MAJOR > 1 else [])]


class Person:
    """The person at a client, who responds to forms."""

    def __init__(self, action: str, **content: Any) -> None:
        self.asked: list[Any] = []
        self._response = types.ElicitResult(action=action, content=content or None)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self._response


def text(answer: Any) -> str:
    return str(answer.content[0].text)


@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_approval_starts_the_action(
    mcp_connect, plain_kernel, ask, tmp_path, transport
) -> None:
    person = Person("accept", approve=True)
    connection = mcp_connect(plain_kernel, transport=transport, elicited=person, name="Claude Code")
    async with connection as session:
        assert text(await session.call_tool("run", {"command": "echo hi"})).startswith("hi")
        written = await session.call_tool(
            "write", {"path": f"{tmp_path}/a.txt", "content": "new line\n"}
        )
        assert not written.is_error
    run, write = person.asked
    assert run.message.startswith("Claude Code wants to do this:\n\n")
    assert "echo hi" in run.message
    terms = r"It waits because every action of an agent waits \(rejected in \d+:\d\d unless you"
    assert re.search(terms, run.message)
    assert "+new line" in write.message
    _, log = await ask("kernels", plain_kernel, "events")
    handling = [each.get("oh_jupyter", {}).get("handling", {}) for each in log["events"]]
    assert "the person at the MCP client" in [each.get("decided_by") for each in handling]


@pytest.mark.thorough
@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_approval_for_the_session_covers_later_actions(
    mcp_connect, plain_kernel, transport
) -> None:
    person = Person("accept", approve=True, scope="session")
    async with mcp_connect(plain_kernel, transport=transport, elicited=person) as session:
        for word in ("one", "two"):
            result = text(await session.call_tool("run", {"command": f"echo {word}"}))
            assert result.startswith(word)
    assert len(person.asked) == 1


@pytest.mark.thorough
@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("person", "reason"),
    [
        (Person("accept", approve=False, reason="use git"), "The user says: use git"),
        (Person("accept", approve=False), "rejected"),
        (Person("decline"), "rejected"),
    ],
)
async def test_a_rejection_reaches_the_agent(
    mcp_connect, plain_kernel, person, reason, transport
) -> None:
    async with mcp_connect(plain_kernel, transport=transport, elicited=person) as session:
        assert reason in text(await session.call_tool("run", {"command": "echo hi"}))


@pytest.mark.thorough
@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize(
    ("transport", "fails"),
    [("http", False), ("http", True), *([("sessionless", False)] if MAJOR > 1 else [])],
)
async def test_after_a_dismissal_the_other_places_decide(
    mcp_connect, plain_kernel, ask, jp_serverapp, transport: str, fails: bool
) -> None:
    dismissed = asyncio.Event()

    async def dismiss(context: Any, params: Any) -> types.ElicitResult:
        dismissed.set()
        if fails:
            raise ValueError("a faulty client")
        return types.ElicitResult(action="cancel")

    async with mcp_connect(plain_kernel, transport=transport, elicited=dismiss) as session:
        calling = asyncio.ensure_future(session.call_tool("run", {"command": "echo hi"}))
        await dismissed.wait()
        _, waiting = await ask("kernels", plain_kernel, "confirmations")
        link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
        await link.request(Confirm(waiting[0]["id"], True))
        assert text(await calling).startswith("hi")


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_is_not_asked_unless_the_setting_allows_it(
    mcp_connect, plain_kernel, ask, jp_serverapp, transport
) -> None:
    person = Person("accept", approve=True)
    async with mcp_connect(plain_kernel, transport=transport, elicited=person) as session:
        calling = asyncio.ensure_future(session.call_tool("run", {"command": "echo hi"}))
        code, waiting = 0, []
        while code != 200 or not waiting:  # 424 until oh_jupyter is loaded
            code, waiting = await ask("kernels", plain_kernel, "confirmations")
        assert waiting[0]["agent"] == "mcp"
        link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
        await link.request(Confirm(waiting[0]["id"], False))
        assert "rejected" in text(await calling)
    assert person.asked == []


LATE_SECONDS = float(os.environ.get("OH_JUPYTER_TEST_LATE_SECONDS", "70"))
"""How late a person approves: later than the 60 s that clients often wait by default."""


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_JUPYTER_CONFIRMATION_TIMEOUT", "7200")


class Waiting:
    """The question of a kernel, and the decision."""

    def __init__(self, ask: Any, link: Any, kernel: str) -> None:
        self._ask = ask
        self._link = link
        self._kernel = kernel

    async def questions(self) -> list[dict[str, Any]]:
        code, waiting = 0, []
        while code != 200 or not waiting:  # 424 until oh_jupyter is loaded
            code, waiting = await self._ask("kernels", self._kernel, "confirmations")
        return waiting

    async def approve(self) -> None:
        (question,) = await self.questions()
        await self._link.request(Confirm(question["id"], True))


@pytest.fixture
def waiting(ask, jp_serverapp, plain_kernel) -> Waiting:
    link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
    return Waiting(ask, link, plain_kernel)


@pytest.mark.slow
@pytest.mark.timeout(200 + LATE_SECONDS)
@pytest.mark.usefixtures("patience")
@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_late_approval_starts_the_action(
    mcp_connect, plain_kernel, waiting, transport
) -> None:
    command = {"command": "echo late"}
    async with mcp_connect(plain_kernel, transport=transport) as session:
        loop = asyncio.get_running_loop()
        late = loop.time() + LATE_SECONDS
        calling = asyncio.ensure_future(session.call_tool("run", command))
        assert (await waiting.questions())[0]["seconds_left"] > 7000
        while (left := late - loop.time()) > 0:
            done, _ = await asyncio.wait({calling}, timeout=left)
            if done:  # it has its turn back before a client gives up, and waits again
                assert "waits for a person's approval" in text(await calling)
                calling = asyncio.ensure_future(session.call_tool("run", command))
        await waiting.approve()
        assert text(await calling).startswith("late")


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_agent_has_its_turn_back_while_its_action_waits(
    mcp_connect, plain_kernel, waiting, transport, tmp_path, monkeypatch
) -> None:
    for name in ("FIRST_LOOK_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(f"oh_jupyter.server.mcp.undecided.{name}", 0.2)
    command = {"command": f"echo ran | tee -a {tmp_path}/runs"}
    async with mcp_connect(plain_kernel, transport=transport) as session:
        for _ in range(2):  # the same call waits on, and asks nothing new
            result = await session.call_tool("run", command)
            (question,) = await waiting.questions()
            says = f"It has not run yet: action {question['id']} waits for a person's approval"
            assert text(result).startswith(says)
            assert "Call run again with the same arguments" in text(result)
            assert "stays open for 5 minutes" in text(result)
        monkeypatch.undo()
        calling = asyncio.ensure_future(session.call_tool("run", command))
        await waiting.approve()
        assert text(await calling).startswith("ran")
        assert (tmp_path / "runs").read_text() == "ran\n"
        # The next one is a new one.
        calling = asyncio.ensure_future(session.call_tool("run", command))
        await waiting.approve()
        assert text(await calling).startswith("ran")
        assert (tmp_path / "runs").read_text() == "ran\nran\n"


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
async def test_the_same_call_returns_the_result_of_an_action_approved_meanwhile(
    mcp_connect, plain_kernel, waiting, ask, tmp_path, monkeypatch
) -> None:
    for name in ("FIRST_LOOK_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(f"oh_jupyter.server.mcp.undecided.{name}", 0.2)
    command = {"command": f"echo ran | tee -a {tmp_path}/runs"}
    async with mcp_connect(plain_kernel) as session:
        assert "has not run yet" in text(await session.call_tool("run", command))
        await waiting.approve()
        async with asyncio.timeout(60):
            while not (tmp_path / "runs").exists():
                await ask("kernels", plain_kernel, "confirmations")
        assert text(await session.call_tool("run", command)).startswith("ran")
    assert (tmp_path / "runs").read_text() == "ran\n"


class SessionlessCalls:
    """Raw requests of 2026-07-28 to the tool run."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = headers

    async def __call__(self, command: str, **params: Any) -> dict[str, Any]:
        from mcp_client import http_library

        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }
        named = {"name": "run", "arguments": {"command": command}, "_meta": meta, **params}
        headers = {
            **self._headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "run",
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": named}
        async with http_library.AsyncClient(timeout=60) as http:
            response = await http.post(self._url, headers=headers, json=message)
        data = [line for line in response.text.splitlines() if line.startswith("data:")]
        return json.loads(data[-1].removeprefix("data:") if data else response.text)["result"]


@pytest.fixture
def sessionless_run(mcp_url, plain_kernel, jp_auth_header) -> SessionlessCalls:
    return SessionlessCalls(f"{mcp_url}/kernels/{plain_kernel}/mcp", jp_auth_header)


@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
@pytest.mark.server_config(**ASKS)
async def test_a_call_is_repeated_with_its_own_state_and_arguments(sessionless_run, ask) -> None:
    required = await sessionless_run("echo one; echo two")
    assert required["resultType"] == "input_required"
    [(key, question)] = required["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert "echo one" in question["params"]["message"]
    approval = {
        "requestState": required["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"approve": True}}},
    }
    other = await sessionless_run("echo other", **approval)
    assert other["isError"]
    assert "belongs to another call" in other["content"][0]["text"]
    forged = await sessionless_run("echo one; echo two", **{**approval, "requestState": "f.0"})
    assert forged["isError"]
    # Without a response, it is asked again.
    again = await sessionless_run("echo one; echo two", requestState=required["requestState"])
    assert again["inputRequests"] == required["inputRequests"]
    result = await sessionless_run("echo one; echo two", **approval)
    assert result["content"][0]["text"].startswith("one\ntwo")
    # A repetition after the end gets the same result, and runs nothing.
    late = await sessionless_run("echo one; echo two", **approval)
    assert late["content"] == result["content"]


@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
@pytest.mark.server_config(**ASKS)
async def test_a_decision_elsewhere_ends_a_call_that_is_repeated(
    sessionless_run, plain_kernel, ask, jp_serverapp
) -> None:
    required = await sessionless_run("echo one")
    _, waiting = await ask("kernels", plain_kernel, "confirmations")
    assert waiting[0]["agent"] == "raw"
    link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
    await link.request(Confirm(waiting[0]["id"], True))
    responses = {key: {"action": "decline"} for key in required["inputRequests"]}
    result = await sessionless_run(
        "echo one", requestState=required["requestState"], inputResponses=responses
    )
    assert result["content"][0]["text"].startswith("one")
