"""Sessions of MCP in plain HTTP, as a client of any version opens them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from mcp_client import http_library

Request = Callable[..., Awaitable[dict[str, Any]]]


def result_of(response: Any) -> dict[str, Any]:
    """The result in a response, which may be an event of a stream."""
    text: str = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {"))[6:]
    return dict(json.loads(text)["result"])


@asynccontextmanager
async def opened(
    url: str,
    headers: dict[str, str],
    version: str,
    capabilities: dict[str, Any] | None = None,
) -> AsyncIterator[Request]:
    """Open a session with plain HTTP, and check what the server agrees to."""
    accepted = {"Accept": "application/json, text/event-stream"}
    ids = count(2)
    async with http_library.AsyncClient(headers=headers | accepted, timeout=60) as http:

        async def send(method: str, params: dict[str, Any], **id: int) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **id}
            return await http.post(f"{url}/mcp", json=message)

        async def request(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            return result_of(await send(method, params or {}, id=next(ids)))

        info = {"name": "old", "version": "1"}
        client = {"clientInfo": info, "capabilities": capabilities or {}}
        answer = await send("initialize", {"protocolVersion": version, **client}, id=1)
        agreed = result_of(answer)
        assert agreed["protocolVersion"] == version
        assert {"tools", "resources", "prompts"} <= agreed["capabilities"].keys()
        http.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        if version >= "2025-06-18":
            http.headers["MCP-Protocol-Version"] = version
        await send("notifications/initialized", {})
        yield request
