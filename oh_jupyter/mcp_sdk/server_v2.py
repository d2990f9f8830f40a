"""A low-level server of major 2: sessions, and the stateless requests of 2026-07-28."""

from __future__ import annotations

import inspect
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedTools, ToolCall

__all__ = ["TOOLS_CHANGED", "make_server"]

TOOLS_CHANGED = ToolsListChanged()
"""The event of the SDK that says that there are other tools."""

LIST_TTL_MS = 60_000
"""How long a client without a session may take a list of tools for true."""


class _Server(Server):
    """A server that says that its tools may change: the session manager leaves that out."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


def make_server(tools: OfferedTools, changes: ChangeBus, **description: Any) -> Any:
    """A server of tools; ``changes`` are passed on to its clients."""

    async def list_tools(ctx: Any, params: Any) -> Any:
        try:
            listed = await tools.list_tools()
        except OhJupyterError as problem:
            raise MCPError(types.INTERNAL_ERROR, str(problem)) from problem
        return types.ListToolsResult.model_validate({"tools": listed, "ttlMs": LIST_TTL_MS})

    async def call_tool(ctx: Any, params: Any) -> Any:
        async def report(progress: float, message: str) -> None:
            await ctx.session.report_progress(progress, None, message)

        arguments, scope = dict(params.arguments or {}), ctx.request.scope
        call = ToolCall(params.name, arguments, scope, report if _wants_progress(ctx) else None)
        return types.CallToolResult.model_validate(await tools.call_tool(call))

    async def follow_changes(ctx: Any, params: Any) -> None:
        # Ends with the session. Newer clients subscribe by a request of their own.
        await changes.follow(ctx.session.send_tool_list_changed)

    server = _Server(
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(changes),
        **_without_looking_at_headers(),
        **description,
    )
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, follow_changes
    )
    return server


def _without_looking_at_headers() -> dict[str, Any]:
    """Otherwise each call would first list all tools, to look for arguments in headers."""
    name = "get_tool_input_schema"
    return {name: lambda tool: None} if name in inspect.signature(Server).parameters else {}


def _wants_progress(ctx: Any) -> bool:
    meta = ctx.meta or {}
    return "progress_token" in meta or "progressToken" in meta
