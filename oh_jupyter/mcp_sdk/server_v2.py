"""A low-level server of major 2: sessions, and the stateless requests of 2026-07-28."""

from __future__ import annotations

import inspect
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedTools, ToolCall

TOOLS_CHANGED = ToolsListChanged()
"""The event of the SDK that says that there are other tools."""

LIST_TTL_MS = 60_000
"""How long a client without a session may take a list of tools for true."""


TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which a call outlives its client."""

TASK_DELAY_SECONDS = 1.0
"""Seconds until a call is a task: what is quicker need not be asked for."""


class _TaskParams(types.RequestParams):
    task_id: str


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
        if not _knows_tasks(ctx):
            return types.CallToolResult.model_validate(await tools.call_tool(call))
        found = await tools.begin_task(call, TASK_DELAY_SECONDS)
        if "taskId" in found:
            return {**found, "resultType": "task"}
        return types.CallToolResult.model_validate(found)

    async def task(ctx: Any, params: _TaskParams, cancel: bool = False) -> dict[str, Any]:
        if not _knows_tasks(ctx):
            lacking: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            message = f"The client has not declared the extension {TASKS}"
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, lacking)
        try:
            return await tools.task(ctx.request.scope, params.task_id, cancel=cancel)
        except OhJupyterError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem

    async def update_task(ctx: Any, params: _TaskParams) -> dict[str, Any]:
        # We ask clients for nothing, so that there is nothing to take note of.
        await task(ctx, params)
        return {}

    async def cancel_task(ctx: Any, params: _TaskParams) -> dict[str, Any]:
        await task(ctx, params, cancel=True)
        return {}

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
    server.extensions[TASKS] = {}
    for name, answer in (("get", task), ("update", update_task), ("cancel", cancel_task)):
        server.add_request_handler(f"tasks/{name}", _TaskParams, answer)
    return server


def _knows_tasks(ctx: Any) -> bool:
    """Whether a request says that its client knows tasks, which belong to no session."""
    known = ctx.session.client_capabilities
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern and known is not None and TASKS in (known.extensions or {})


def _without_looking_at_headers() -> dict[str, Any]:
    """Otherwise each call would first list all tools, to look for arguments in headers."""
    name = "get_tool_input_schema"
    return {name: lambda tool: None} if name in inspect.signature(Server).parameters else {}


def _wants_progress(ctx: Any) -> bool:
    meta = ctx.meta or {}
    return "progress_token" in meta or "progressToken" in meta
