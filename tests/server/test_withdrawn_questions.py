"""A question that no client waits for any more is withdrawn, and its action never runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp_client import http_library, text_of

from oh_jupyter.errors import ConfirmationError
from oh_jupyter.operations.actions import Confirm, Confirmations
from oh_jupyter.server.state import state_of

pytestmark = pytest.mark.server_config(OhJupyter={"confirmation": "always"})


class Questions:
    """The waiting actions of a kernel, and its log."""

    def __init__(self, ask: Any, link: Any, kernel: str) -> None:
        self._ask = ask
        self._link = link
        self._kernel = kernel

    async def opened(self) -> int:
        """Wait for a question; return its id."""
        code, waiting = 0, []
        async with asyncio.timeout(60):
            while code != 200 or not waiting:  # 424 until oh_jupyter is loaded
                code, waiting = await self._ask("kernels", self._kernel, "confirmations")
        return int(waiting[0]["id"])

    async def withdrawn(self, id: int) -> None:
        """Wait until nothing waits any more; check that the action is recorded, and cannot run."""
        async with asyncio.timeout(30):
            await self._link.request(Confirmations(wait=30, known=[id]))
        assert (await self._ask("kernels", self._kernel, "confirmations")) == (200, [])
        with pytest.raises(ConfirmationError, match="No action"):
            await self._link.request(Confirm(id, True))
        _, log = await self._ask("kernels", self._kernel, "events")
        [ended] = [each for each in log["events"] if each.get("cause") == id]
        assert ended["content"].startswith("The question about this action was withdrawn")
        assert ended["oh_jupyter"]["handling"] == {"withdrawn": True, "never_began": True}


@pytest.fixture
def questions(ask: Any, jp_serverapp: Any, plain_kernel: str) -> Questions:
    link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
    return Questions(ask, link, plain_kernel)


async def test_a_rest_client_that_leaves(
    questions: Questions, mcp_url: str, jp_auth_header: Any, plain_kernel: str, tmp_path: Path
) -> None:
    action = {"action": "run", "args": {"command": f"touch {tmp_path}/made"}}
    address = f"{mcp_url}/kernels/{plain_kernel}/execute_action"
    async with http_library.AsyncClient(headers=jp_auth_header, timeout=60) as http:
        asking = asyncio.ensure_future(http.post(address, json={"action": action}))
        id = await questions.opened()
        asking.cancel()
        await questions.withdrawn(id)
    assert not (tmp_path / "made").exists()


async def test_a_rest_client_with_an_id_that_does_not_return(
    questions: Questions,
    mcp_url: str,
    jp_auth_header: Any,
    plain_kernel: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    action = {"action": "run", "args": {"command": f"touch {tmp_path}/made"}}
    address = f"{mcp_url}/kernels/{plain_kernel}/execute_action"
    headers = {**jp_auth_header, "X-Request-ID": "mine"}
    async with http_library.AsyncClient(headers=headers, timeout=60) as http:
        asking = asyncio.ensure_future(http.post(address, json={"action": action}))
        id = await questions.opened()
        asking.cancel()
        # It returns in time, and its question is still there.
        response = await http.get(f"{mcp_url}/requests/mine")
        assert response.status_code == 202
        assert await questions.opened() == id
        monkeypatch.setattr("oh_jupyter.server.result_store.ABSENCE_SECONDS", 0.1)
        leaving = asyncio.ensure_future(http.get(f"{mcp_url}/requests/mine?wait=60"))
        await asyncio.wait({leaving}, timeout=0.2)
        leaving.cancel()
        await questions.withdrawn(id)
        response = await http.get(f"{mcp_url}/requests/mine")
        assert response.status_code >= 400
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_cancelled_call(
    questions: Questions, mcp_connect: Any, plain_kernel: str, tmp_path: Path, transport: str
) -> None:
    async with mcp_connect(plain_kernel, transport=transport) as session:
        command = {"command": f"touch {tmp_path}/made"}
        calling = asyncio.ensure_future(session.call_tool("run", command))
        id = await questions.opened()
        calling.cancel()
        await questions.withdrawn(id)
    assert not (tmp_path / "made").exists()


async def test_a_client_of_sse_that_disconnects(
    questions: Questions, mcp_connect: Any, plain_kernel: str, tmp_path: Path
) -> None:
    async with mcp_connect(plain_kernel, transport="sse") as session:
        command = {"command": f"touch {tmp_path}/made"}
        calling = asyncio.ensure_future(session.call_tool("run", command))
        id = await questions.opened()
    await questions.withdrawn(id)
    await asyncio.wait({calling})
    assert not (tmp_path / "made").exists()


class RawSession:
    """A session of streamable HTTP by plain requests."""

    def __init__(self, http: Any, url: str, headers: dict[str, str]) -> None:
        self._http = http
        self._url = url
        self.headers = headers

    @classmethod
    async def open(cls, http: Any, url: str) -> RawSession:
        headers = {"Accept": "application/json, text/event-stream"}
        session = cls(http, url, headers)
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answer = await session.send("initialize", hello, 1)
        headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        headers["MCP-Protocol-Version"] = "2025-06-18"
        await session.send("notifications/initialized", {}, None)
        return session

    async def send(self, method: str, params: dict[str, Any], id: int | None) -> Any:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if id is not None:
            message["id"] = id
        return await self._http.post(self._url, json=message, headers=self.headers)

    async def end(self) -> None:
        await self._http.delete(self._url, headers=self.headers)


@pytest.mark.parametrize("how", ["closes its request", "ends its session", "both"])
async def test_an_mcp_client_that_leaves(
    questions: Questions,
    mcp_url: str,
    jp_auth_header: Any,
    plain_kernel: str,
    tmp_path: Path,
    how: str,
) -> None:
    params = {"name": "run", "arguments": {"command": f"touch {tmp_path}/made"}}
    async with http_library.AsyncClient(headers=jp_auth_header, timeout=60) as http:
        session = await RawSession.open(http, f"{mcp_url}/kernels/{plain_kernel}/mcp")
        calling = asyncio.ensure_future(session.send("tools/call", params, 2))
        id = await questions.opened()
        if how != "closes its request":
            await session.end()
        if how != "ends its session":
            calling.cancel()
        await questions.withdrawn(id)
        calling.cancel()
    assert not (tmp_path / "made").exists()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_LOOK_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(f"oh_jupyter.server.mcp.undecided.{name}", 0.1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_session_that_ends_after_its_call_returned(
    questions: Questions, mcp_connect: Any, plain_kernel: str, tmp_path: Path, transport: str
) -> None:
    async with mcp_connect(plain_kernel, transport=transport) as session:
        waits = await session.call_tool("run", {"command": f"touch {tmp_path}/made"})
        id = await questions.opened()
        assert f"It has not run yet: action {id} waits for a person's approval" in text_of(waits)
    await questions.withdrawn(id)
    assert not (tmp_path / "made").exists()
