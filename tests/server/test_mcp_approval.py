"""The person at an MCP client is asked about a waiting action, where the client can ask."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import types

from oh_jupyter.server.state import state_of

ASKS = {"OhJupyter": {"confirmation": "always", "approval_by_client": True}}


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
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_approval_starts_the_action(
    mcp_connect, plain_kernel, ask, tmp_path, transport
) -> None:
    person = Person("accept", approve=True)
    async with mcp_connect(plain_kernel, transport=transport, elicited=person) as session:
        assert text(await session.call_tool("run", {"command": "echo hi"})).startswith("hi")
        written = await session.call_tool(
            "write", {"path": f"{tmp_path}/a.txt", "content": "new line\n"}
        )
        assert not written.is_error
    run, write = person.asked
    assert "echo hi" in run.message
    assert run.message.endswith("It waits because every action of an agent waits.")
    assert "+new line" in write.message
    _, log = await ask("kernels", plain_kernel, "events")
    handling = [each.get("oh_jupyter", {}).get("handling", {}) for each in log["events"]]
    assert "the person at the MCP client" in [each.get("decided_by") for each in handling]


@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize(
    ("person", "reason"),
    [
        (Person("accept", approve=False, reason="use git"), "The user says: use git"),
        (Person("accept", approve=False), "rejected"),
        (Person("decline"), "rejected"),
    ],
)
async def test_a_rejection_reaches_the_agent(mcp_connect, plain_kernel, person, reason) -> None:
    async with mcp_connect(plain_kernel, elicited=person) as session:
        assert reason in text(await session.call_tool("run", {"command": "echo hi"}))


@pytest.mark.server_config(**ASKS)
@pytest.mark.parametrize("fails", [False, True])
async def test_after_a_dismissal_the_other_places_decide(
    mcp_connect, plain_kernel, ask, jp_serverapp, fails: bool
) -> None:
    dismissed = asyncio.Event()

    async def dismiss(context: Any, params: Any) -> types.ElicitResult:
        dismissed.set()
        if fails:
            raise ValueError("a faulty client")
        return types.ElicitResult(action="cancel")

    async with mcp_connect(plain_kernel, elicited=dismiss) as session:
        calling = asyncio.ensure_future(session.call_tool("run", {"command": "echo hi"}))
        await dismissed.wait()
        _, waiting = await ask("kernels", plain_kernel, "confirmations")
        link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
        await link.request("confirm", {"id": waiting[0]["id"], "approve": True})
        assert text(await calling).startswith("hi")


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
async def test_a_client_is_not_asked_unless_the_setting_allows_it(
    mcp_connect, plain_kernel, ask, jp_serverapp
) -> None:
    person = Person("accept", approve=True)
    async with mcp_connect(plain_kernel, elicited=person) as session:
        calling = asyncio.ensure_future(session.call_tool("run", {"command": "echo hi"}))
        code, waiting = 0, []
        while code != 200 or not waiting:  # 424 until oh_jupyter is loaded
            code, waiting = await ask("kernels", plain_kernel, "confirmations")
        link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
        await link.request("confirm", {"id": waiting[0]["id"], "approve": False})
        assert "rejected" in text(await calling)
    assert person.asked == []
