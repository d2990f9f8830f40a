"""Our MCP server in the configuration of Codex, which alone sets the timeout of its tool calls."""

from __future__ import annotations

import json

from oh_jupyter.agents.tool_server import TOOL_SERVER, ToolServer

TOOL_TIMEOUT_SECONDS = 24 * 3600
"""Timeout of a call, which waits for a person or a long cell. An interrupt ends it earlier."""


def codex_tool_server(tools: ToolServer) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the arguments and the environment with which Codex uses our MCP server.

    A server in ``session/new`` gets Codex' default timeout, which progress does not extend. The
    headers are secret, so they go through the environment: everybody sees command lines.
    """
    variables = {name: _variable(name) for name in tools.headers}
    table = ", ".join(f"{json.dumps(name)} = {json.dumps(variables[name])}" for name in variables)
    key = f"mcp_servers.{TOOL_SERVER}"
    options = (
        f"{key}.url={json.dumps(f'{tools.url}/mcp')}",
        f"{key}.env_http_headers={{{table}}}",
        f"{key}.tool_timeout_sec={TOOL_TIMEOUT_SECONDS}",
    )
    arguments = tuple(word for option in options for word in ("-c", option))
    return arguments, {variables[name]: value for name, value in tools.headers.items()}


def _variable(header: str) -> str:
    return f"OH_HEADER_{header.upper().replace('-', '_')}"
