"""Handshakes with each version of MCP, as sent by clients of that time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_client import http_library

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "baggage": "user=ann",
}

Request = Callable[..., Awaitable[dict[str, Any]]]


def result_of(response: Any) -> dict[str, Any]:
    """The result in a response, which may be an event of a stream."""
    text: str = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {"))[6:]
    return dict(json.loads(text)["result"])


@asynccontextmanager
async def opened(url: str, headers: dict[str, str], version: str) -> AsyncIterator[Request]:
    """Open a session with plain HTTP, and check what the server agrees to."""
    accepted = {"Accept": "application/json, text/event-stream"}
    async with http_library.AsyncClient(headers=headers | accepted, timeout=60) as http:

        async def send(method: str, params: dict[str, Any], **id: int) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **id}
            return await http.post(f"{url}/mcp", json=message)

        async def request(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            return result_of(await send(method, params or {}, id=2))

        client = {"clientInfo": {"name": "old", "version": "1"}, "capabilities": {}}
        answer = await send("initialize", {"protocolVersion": version, **client}, id=1)
        agreed = result_of(answer)
        assert agreed["protocolVersion"] == version
        assert {"tools", "resources", "prompts"} <= agreed["capabilities"].keys()
        http.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        if version >= "2025-06-18":
            http.headers["MCP-Protocol-Version"] = version
        await send("notifications/initialized", {})
        yield request


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_of_an_older_version_is_served(mcp_url, jp_auth_header, version) -> None:
    async with opened(mcp_url, jp_auth_header, version) as request:
        assert len((await request("tools/list"))["tools"]) == 16
        shown = await request("tools/call", {"name": "list_notebooks", "arguments": {}})
        assert shown["content"][0]["text"] == "No notebook is open."
        assert (await request("resources/list"))["resources"] == []
        assert len((await request("prompts/list"))["prompts"]) == 2


@pytest.mark.parametrize(
    ("meta", "recorded"),
    [(TRACE, TRACE), ({"traceparent": "x\n", "tracestate": 3, "baggage": "\xe9"}, {})],
    ids=["a trace", "malformed"],
)
async def test_the_trace_of_a_call_is_in_the_log(
    mcp_url, jp_auth_header, ask, meta, recorded
) -> None:
    call = {"name": "run", "arguments": {"command": "echo traced"}, "_meta": meta}
    async with opened(mcp_url, jp_auth_header, "2025-11-25") as request:
        assert (await request("tools/call", call))["content"][0]["text"].startswith("traced")
    events = (await ask("events"))[1]["events"]
    (action,) = [event for event in events if event.get("action") == "run"]
    actor = action["oh_jupyter"]["actor"]
    names = ("traceparent", "tracestate", "baggage")
    assert {name: actor[name] for name in names if name in actor} == recorded


async def test_programs_of_a_traced_call_have_the_trace_in_their_environment(
    mcp_url, jp_auth_header
) -> None:
    show = "printenv TRACEPARENT BAGGAGE"
    cell = f"import subprocess; print(subprocess.run({show!r}.split(), capture_output=True).stdout)"
    expected = f"{TRACE['traceparent']}\n{TRACE['baggage']}\n"

    async with opened(mcp_url, jp_auth_header, "2025-11-25") as request:

        async def text_of(tool: str, arguments: dict[str, str], **meta: Any) -> str:
            call = {"name": tool, "arguments": arguments, **meta}
            return str((await request("tools/call", call))["content"][0]["text"])

        for _ in range(2):
            shown = await text_of("run", {"command": show}, _meta=TRACE)
            assert shown.startswith(expected)
            assert not (await text_of("run", {"command": show})).startswith(expected)
            shown = await text_of("run_ipython", {"code": cell}, _meta=TRACE)
            assert shown.startswith(repr(expected.encode()))
            assert (await text_of("run_ipython", {"code": cell})).startswith("b''")
