"""Handshakes with each version of MCP, as sent by clients of that time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_client import http_library


def body_of(response: Any) -> dict[str, Any]:
    """The message of a response, which may be an event of a stream."""
    text: str = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {"))[6:]
    return dict(json.loads(text))


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_of_an_older_version_is_served(mcp_url, jp_auth_header, version) -> None:
    accepted = {"Accept": "application/json, text/event-stream"}
    async with http_library.AsyncClient(headers=jp_auth_header | accepted, timeout=60) as http:

        async def send(method: str, params: dict[str, Any], **message: Any) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **message}
            return await http.post(f"{mcp_url}/mcp", json=message)

        client = {"clientInfo": {"name": "old", "version": "1"}, "capabilities": {}}
        answer = await send("initialize", {"protocolVersion": version, **client}, id=1)
        result = body_of(answer)["result"]
        assert result["protocolVersion"] == version
        assert {"tools", "resources", "prompts"} <= result["capabilities"].keys()
        http.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        if version >= "2025-06-18":
            http.headers["MCP-Protocol-Version"] = version
        await send("notifications/initialized", {})
        tools = body_of(await send("tools/list", {}, id=2))["result"]["tools"]
        assert len(tools) == 16
        called = {"name": "list_notebooks", "arguments": {}}
        shown = body_of(await send("tools/call", called, id=3))["result"]
        assert shown["content"][0]["text"] == "No notebook is open."
        assert body_of(await send("resources/list", {}, id=4))["result"]["resources"] == []
        assert len(body_of(await send("prompts/list", {}, id=5))["result"]["prompts"]) == 2
