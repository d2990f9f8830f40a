"""Our MCP server for this kernel, which agents use, and a first listing of its tools."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.control_messages import GUEST_HEADER
from oh_jupyter.errors import AgentError

TOOL_SERVER = "oh"
"""Name under which an agent gets our MCP server."""

TIMEOUT_SECONDS = 30.0
PROTOCOL_VERSION = "2025-06-18"


@dataclass(frozen=True)
class ToolServer:
    """Address of our MCP server for this kernel.

    Attributes:
        url: Address of the kernel below the extension, without ``/mcp``.
        token: Token of the Jupyter server, or "".
        guest: Name of the agent's conversation, which identifies its Actions.
    """

    url: str
    token: str = field(repr=False)
    guest: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of a request."""
        headers = {"Authorization": f"token {self.token}"} if self.token else {}
        return headers | ({GUEST_HEADER: self.guest} if self.guest else {})


def save_open_documents(server: ToolServer) -> None:
    """Make JupyterLab's tabs save their changes; ignore failures."""
    import requests

    address = f"{server.url.rpartition('/kernels/')[0]}/unsaved"
    with suppress(requests.RequestException):
        requests.post(address, headers=server.headers, timeout=TIMEOUT_SECONDS)


def list_tools(server: ToolServer) -> list[str]:
    """Return the names of our tools, listed like an agent's client; raise AgentError on failure."""
    # Agents continue silently without tools that they cannot list, or that their client lists after
    # the first prompt. The SDK would cost its import.
    import requests

    try:
        with requests.Session() as http:
            http.headers.update(server.headers)
            http.headers["Accept"] = "application/json, text/event-stream"
            client = {"name": "oh_jupyter", "version": __version__}
            params = {
                "protocolVersion": PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": client,
            }
            response = _post(http, server, {"id": 1, "method": "initialize", "params": params})
            if session_id := response.headers.get("Mcp-Session-Id"):
                http.headers["Mcp-Session-Id"] = session_id
            _post(http, server, {"method": "notifications/initialized"})
            response = _post(http, server, {"id": 2, "method": "tools/list", "params": {}})
            names = [str(tool["name"]) for tool in _result(response.text)["tools"]]
            if session_id:
                http.delete(f"{server.url}/mcp", timeout=TIMEOUT_SECONDS)
            return names
    except (requests.RequestException, ValueError, LookupError, TypeError) as error:
        raise AgentError(
            f"The tools of this kernel at {server.url}/mcp cannot be listed: {error}. "
            "Is oh_jupyter enabled in that Jupyter server, too?"
        ) from None


def _post(http: Any, server: ToolServer, message: dict[str, Any]) -> Any:
    response = http.post(
        f"{server.url}/mcp", json={"jsonrpc": "2.0", **message}, timeout=TIMEOUT_SECONDS
    )
    response.raise_for_status()
    return response


def _result(body: str) -> dict[str, Any]:
    """Return the result in a response, which is JSON or an event stream."""
    if not body.lstrip().startswith("{"):
        lines = (line.removeprefix("data:") for line in body.splitlines() if "{" in line)
        body = next(lines, "")
    result: dict[str, Any] = json.loads(body)["result"]
    return result
