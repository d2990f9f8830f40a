"""Attempts by other sites, strangers and careless clients, beside wrong credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from oh_jupyter.server.state import state_of

ACTION = {"action": {"action": "run", "args": {"command": "true"}}}
STREAMS = 200


@pytest.fixture
def log_in(mcp_url: str, jp_auth_header: dict[str, str]) -> Any:
    """A browser whose person has logged in: it sends cookies, whichever page asks."""

    @asynccontextmanager
    async def log_in() -> AsyncIterator[httpx.AsyncClient]:
        token = jp_auth_header["Authorization"].removeprefix("token ")
        async with httpx.AsyncClient(timeout=60) as client:
            await client.get(f"{mcp_url}/alive", params={"token": token})
            assert (await client.get(f"{mcp_url}/alive")).status_code == 200
            yield client

    return log_in


async def test_other_sites_cannot_use_the_cookies(
    log_in: Any, mcp_url: str, jp_serverapp: Any
) -> None:
    form = {"file": ("x", b"x")}
    async with log_in() as client:
        for method, path, sent in (
            ("POST", "execute_action", {"json": ACTION}),
            ("POST", "execute_action", {"content": json.dumps(ACTION)}),
            ("POST", "upload_file?destination=/tmp", {"files": form}),
            ("POST", "update_mcp_server", {"json": []}),
            ("POST", "confirmations/0", {"json": {"approve": False}}),
            ("POST", "mcp", {"json": {}}),
            ("PUT", "store/x", {"content": b"x"}),
            ("DELETE", "store/x", {}),
            ("DELETE", "requests/x", {}),
        ):
            # Who is refused early may lose the answer while the body is on its way.
            with suppress(httpx.NetworkError):
                answer = await client.request(method, f"{mcp_url}/{path}", **sent)
                assert answer.status_code == 403, (method, path, answer.text)
        other = {"Origin": "https://evil.example"}
        answer = await client.get(f"{mcp_url}/alive", headers=other)
        assert "Access-Control-Allow-Origin" not in answer.headers
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


async def test_another_name_of_the_host_is_refused(
    mcp_url: str, jp_auth_header: dict[str, str]
) -> None:
    headers = {**jp_auth_header, "Host": "evil.example"}
    async with httpx.AsyncClient(timeout=60) as client:
        for path in ("alive", "events", "openapi.yaml"):
            assert (await client.get(f"{mcp_url}/{path}", headers=headers)).status_code == 403
        answer = await client.post(f"{mcp_url}/execute_action", json=ACTION, headers=headers)
        assert answer.status_code == 403


@pytest.mark.thorough
async def test_endless_heads_end(mcp_url: str, act: Any) -> None:
    parts = urlsplit(mcp_url)
    for piece in (b"X-A: " + b"x" * 1000 + b"\r\n", b"X" * 1000):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"GET {parts.path}/alive HTTP/1.1\r\n".encode())
        with suppress(ConnectionError):
            for _ in range(2000):
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(60):
                assert b" 200 " not in await reader.read()
        writer.close()
    assert (await act("run", command="true"))[0] == 200


@pytest.mark.thorough
async def test_streams_that_are_left_leave_nothing(
    mcp_url: str, jp_auth_header: dict[str, str], act: Any, jp_serverapp: Any
) -> None:
    parts = urlsplit(mcp_url)
    await act("run", command="true")
    connections = []
    for path in ["events"] * (STREAMS - 20) + ["mcp/sse"] * 20:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = [
            f"GET {parts.path}/{path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Authorization: {jp_auth_header['Authorization']}",
            "Accept: text/event-stream",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode())
        connections.append((reader, writer))
    async with asyncio.timeout(100):
        for reader, _ in connections:
            assert b" 200 " in await reader.readline()
        assert (await act("run", command="echo on"))[1]["content"] == "on"
        for _, writer in connections:
            writer.transport.abort()
        link = await state_of(jp_serverapp.web_app.settings).router.default()
        while (await link.ask("oh_jupyter_request", {"op": "ping"}))["content"]["pending"]:
            await asyncio.sleep(0.05)
    assert (await act("run", command="echo on"))[1]["content"] == "on"
