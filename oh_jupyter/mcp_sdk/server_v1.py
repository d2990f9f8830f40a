"""A low-level server of major 1: sessions only, and tasks as 2025-11-25 has them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import McpError
from mcp.shared.message import SessionMessage

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedTools, ToolCall

TOOLS_CHANGED = "notifications/tools/list_changed"
"""The notification that says that there are other tools."""

MAX_TTL_MS = 2**31 - 1
"""What stands for no limit: the SDK leaves null out, without which clients refuse the task."""

_initialized: ContextVar[anyio.Event] = ContextVar("_initialized")
"""Set when the client of a session is ready: notifications do not say whose they are."""


class _Server(Server):
    """A server that tells its sessions of other tools."""

    changes: ChangeBus

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))

    def get_capabilities(self, *args: Any, **kwargs: Any) -> Any:
        found = super().get_capabilities(*args, **kwargs)
        found.tasks = types.ServerTasksCapability.model_validate(
            {"cancel": {}, "requests": {"tools": {"call": {}}}}
        )
        return found

    async def run(self, read_stream: Any, write_stream: Any, *args: Any, **kwargs: Any) -> None:
        ready = anyio.Event()
        _initialized.set(ready)

        async def tell() -> None:
            notification = types.JSONRPCNotification(jsonrpc="2.0", method=TOOLS_CHANGED)
            await write_stream.send(SessionMessage(types.JSONRPCMessage(notification)))

        async def follow() -> None:
            await ready.wait()
            await self.changes.follow(tell)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await super().run(read_stream, write_stream, *args, **kwargs)
            group.cancel_scope.cancel()


def make_server(tools: OfferedTools, changes: ChangeBus, **description: Any) -> Any:
    """A server of tools; ``changes`` are passed on to its clients."""
    server = _Server(**description)
    server.changes = changes

    async def list_tools(request: Any) -> Any:
        try:
            listed = await tools.list_tools()
        except OhJupyterError as problem:
            error = types.ErrorData(code=types.INTERNAL_ERROR, message=str(problem))
            raise McpError(error) from problem
        able = [{**tool, "execution": {"taskSupport": "optional"}} for tool in listed]
        return types.ServerResult(types.ListToolsResult.model_validate({"tools": able}))

    async def call_tool(request: Any) -> Any:
        context, params = server.request_context, request.params
        token = context.meta.progressToken if context.meta else None

        async def report(progress: float, message: str) -> None:
            # The request's id must not be 0, which would count as none.
            await context.session.send_progress_notification(
                token, progress, None, message, related_request_id=str(context.request_id)
            )

        arguments, scope = dict(params.arguments or {}), context.request.scope
        call = ToolCall(params.name, arguments, scope, None if token is None else report)
        if params.task is not None:
            begun = await tools.begin_task(call, delay_seconds=0)
            if "taskId" in begun:
                created = types.CreateTaskResult.model_validate({"task": _task(begun)})
                return types.ServerResult(created)
        else:
            begun = await tools.call_tool(call)
        return types.ServerResult(types.CallToolResult.model_validate(begun))

    async def task(request: Any, **look: bool) -> dict[str, Any]:
        scope, id = server.request_context.request.scope, request.params.taskId
        try:
            return await tools.task(scope, id, **look)
        except OhJupyterError as problem:
            error = types.ErrorData(code=types.INVALID_PARAMS, message=str(problem))
            raise McpError(error) from problem

    async def get_task(request: Any) -> Any:
        found = _task(await task(request))
        return types.ServerResult(types.GetTaskResult.model_validate(found))

    async def task_result(request: Any) -> Any:
        found = await task(request, wait=True)
        result = found.get("result") or {
            "content": [{"type": "text", "text": found["statusMessage"]}],
            "isError": True,
        }
        related = {"io.modelcontextprotocol/related-task": {"taskId": found["taskId"]}}
        told = {**result, "_meta": {**(result.get("_meta") or {}), **related}}
        return types.ServerResult(types.GetTaskPayloadResult.model_validate(told))

    async def cancel_task(request: Any) -> Any:
        found = _task(await task(request, cancel=True))
        return types.ServerResult(types.CancelTaskResult.model_validate(found))

    async def initialized(notification: Any) -> None:
        _initialized.get().set()

    # The decorators for these would list all tools before a call.
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    server.request_handlers[types.GetTaskRequest] = get_task
    server.request_handlers[types.GetTaskPayloadRequest] = task_result
    server.request_handlers[types.CancelTaskRequest] = cancel_task
    server.notification_handlers[types.InitializedNotification] = initialized
    return server


def _task(found: dict[str, Any]) -> dict[str, Any]:
    """A task as 2025-11-25 tells it: its result is asked for by itself."""
    told = {name: value for name, value in found.items() if name not in ("result", "inputRequests")}
    ttl_ms = told.pop("ttlMs") or MAX_TTL_MS
    return {**told, "ttl": ttl_ms, "pollInterval": told.pop("pollIntervalMs")}
