"""Calls of a guest's tools that the server of this kernel executes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from oh_jupyter._version import __version__
from oh_jupyter.control_messages import GUEST_HEADER
from oh_jupyter.errors import ServerError
from oh_jupyter.kernel.own_server import OwnServer
from oh_jupyter.mcp_tools.results import Result

CONNECT_SECONDS = 30.0
PROTOCOL_VERSION = "2025-06-18"
_SESSION = "Mcp-Session-Id"


class _LostSessionError(ServerError):
    """The server does not know our session; nothing was executed."""


class ServerTools:
    """A session with the server's MCP endpoint, in the name of a guest.

    The guest never sees the server's token, which stays in this process.
    """

    def __init__(self, server: OwnServer, guest: str) -> None:
        # A cell may take hours.
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(CONNECT_SECONDS, read=None),
            limits=httpx.Limits(max_connections=None),
            headers={
                **server.headers,
                GUEST_HEADER: guest,
                "Accept": "application/json, text/event-stream",
            },
            trust_env=False,
        )
        self._url = f"{server.url}/mcp"
        self._opening = asyncio.Lock()
        self._session: dict[str, str] | None = None
        self._last_id = 0

    async def call(self, name: str, arguments: Mapping[str, Any], client: str) -> Result:
        """Call a tool for a client; raise ServerError, or httpx.ConnectError without a server."""
        params = {"name": name, "arguments": dict(arguments)}
        result: Result
        try:
            result = await self._ask("tools/call", params, await self._open(client))
        except _LostSessionError:
            result = await self._ask("tools/call", params, await self._open(client))
        return result

    async def _open(self, client: str) -> dict[str, str]:
        """Return the headers of the session."""
        async with self._opening:
            if self._session is None:
                params = {
                    "protocolVersion": PROTOCOL_VERSION,
                    "capabilities": {},
                    "clientInfo": {"name": client or "oh_jupyter", "version": __version__},
                }
                session: dict[str, str] = {}
                await self._ask("initialize", params, session)
                await self._post({"method": "notifications/initialized"}, session)
                self._session = session
            return self._session

    async def _ask(self, method: str, params: dict[str, Any], session: dict[str, str]) -> Any:
        self._last_id += 1
        id = self._last_id
        response = await self._post({"id": id, "method": method, "params": params}, session)
        for message in response:
            if message.get("id") == id and "method" not in message:
                if "error" in message:
                    raise ServerError(str(message["error"].get("message")))
                return message["result"]
        raise ServerError(f"{self._url} sent an incomplete response")

    async def _post(self, message: dict[str, Any], session: dict[str, str]) -> list[dict[str, Any]]:
        """Send a message; return the messages of the response."""
        content = {"jsonrpc": "2.0", **message}
        try:
            response = await self._http.post(self._url, json=content, headers=session)
            if response.status_code == 404:  # the server was restarted
                self._session = None
                raise _LostSessionError(f"{self._url} has no such session; nothing was executed")
            response.raise_for_status()
        except httpx.ConnectError:
            self._session = None
            raise
        except httpx.HTTPError as error:
            raise ServerError(
                f"The connection to {self._url} was lost before the response; the call may have "
                f"been executed: {error}"
            ) from error
        if _SESSION in response.headers:
            session[_SESSION] = response.headers[_SESSION]
        return _messages(response)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _messages(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the messages of a response, JSON or an event stream."""
    body = response.text
    if not body.lstrip().startswith("{"):
        lines = [line.removeprefix("data:").strip() for line in body.splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]
    return [json.loads(body)]
