"""A low-level server of major 1: sessions only, and tasks of 2025-11-25."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
from mcp import types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import McpError
from mcp.shared.message import SessionMessage

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.client_of import client_name, elicit_during, scope_of, shows_apps
from oh_jupyter.mcp_sdk.offered import (
    ChangeBus,
    OfferedContext,
    OfferedTools,
    ToolRequest,
)
from oh_jupyter.trace_context import trace_of

T = TypeVar("T")

TOOLS_CHANGED = "notifications/tools/list_changed"
"""Notification of changed tools."""

MAX_TTL_MS = 2**31 - 1
"""Stands for no limit: the SDK omits null, and clients reject a task without the field."""

_initialized: ContextVar[anyio.Event] = ContextVar("_initialized")
"""Set when the client of a session is ready: notifications do not name their session."""


class _Server(Server):
    """A server that notifies its sessions of changed tools."""

    changes: ChangeBus
    has_tasks: bool

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))

    def get_capabilities(self, *args: Any, **kwargs: Any) -> Any:
        capabilities = super().get_capabilities(*args, **kwargs)
        if self.has_tasks:
            capabilities.tasks = types.ServerTasksCapability.model_validate(
                {"cancel": {}, "requests": {"tools": {"call": {}}}}
            )
        return capabilities

    async def run(self, read_stream: Any, write_stream: Any, *args: Any, **kwargs: Any) -> None:
        ready = anyio.Event()
        _initialized.set(ready)

        async def notify() -> None:
            notification = types.JSONRPCNotification(jsonrpc="2.0", method=TOOLS_CHANGED)
            await write_stream.send(SessionMessage(types.JSONRPCMessage(notification)))

        async def follow() -> None:
            await ready.wait()
            await self.changes.follow(notify)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await super().run(read_stream, write_stream, *args, **kwargs)
            group.cancel_scope.cancel()


def make_server(
    tools: OfferedTools,
    changes: ChangeBus,
    *,
    context: OfferedContext | None = None,
    has_tasks: bool = True,
    **description: Any,
) -> Any:
    """Make a server of tools that passes ``changes`` on to its clients."""
    server = _Server(**description)
    server.changes, server.has_tasks = changes, has_tasks

    async def list_tools(request: Any) -> Any:
        try:
            has_apps = shows_apps(server.request_context.session)
            listed = await tools.list_tools(has_apps=has_apps)
        except OhJupyterError as error:
            data = types.ErrorData(code=types.INTERNAL_ERROR, message=str(error))
            raise McpError(data) from error
        support = {"execution": {"taskSupport": "optional"}} if has_tasks else {}
        described = [{**tool, **support} for tool in listed]
        return types.ServerResult(types.ListToolsResult.model_validate({"tools": described}))

    async def call_tool(request: Any) -> Any:
        context, params = server.request_context, request.params
        token = context.meta.progressToken if context.meta else None

        async def report(progress: float, message: str) -> None:
            # As a string, since the id 0 would count as none.
            await context.session.send_progress_notification(
                token, progress, None, message, related_request_id=str(context.request_id)
            )

        arguments, scope = dict(params.arguments or {}), scope_of(context.request)
        call = ToolRequest(
            params.name,
            arguments,
            scope,
            None if token is None else report,
            elicit_during(context.session, context.request_id),
            client_name(context.session),
            trace=trace_of((context.meta.model_extra if context.meta else None) or {}),
            has_apps=shows_apps(context.session),
        )
        if params.task is not None and has_tasks:
            result = await tools.start_task(call, delay_seconds=0)
            if "taskId" in result:
                created = types.CreateTaskResult.model_validate({"task": _task(result)})
                return types.ServerResult(created)
        else:
            result = await tools.call_tool(call)
        return types.ServerResult(types.CallToolResult.model_validate(result))

    async def task(request: Any, **look: Any) -> dict[str, Any]:
        scope, id = scope_of(server.request_context.request), request.params.taskId
        try:
            return await tools.task(scope, id, **look)
        except OhJupyterError as error:
            data = types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
            raise McpError(data) from error

    async def get_task(request: Any) -> Any:
        model = types.GetTaskResult.model_validate(_task(await task(request)))
        return types.ServerResult(model)

    async def task_result(request: Any) -> Any:
        ended = await task(request, wait=True)
        result = ended.get("result") or {
            "content": [{"type": "text", "text": ended["statusMessage"]}],
            "isError": True,
        }
        related = {"io.modelcontextprotocol/related-task": {"taskId": ended["taskId"]}}
        payload = {**result, "_meta": {**(result.get("_meta") or {}), **related}}
        return types.ServerResult(types.GetTaskPayloadResult.model_validate(payload))

    async def cancel_task(request: Any) -> Any:
        model = types.CancelTaskResult.model_validate(_task(await task(request, cancel=True)))
        return types.ServerResult(model)

    async def initialized(notification: Any) -> None:
        _initialized.get().set()

    if context is not None:
        _add_context(server, context)
    # The SDK's decorators would list all tools before a call.
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    if has_tasks:
        server.request_handlers[types.GetTaskRequest] = get_task
        server.request_handlers[types.GetTaskPayloadRequest] = task_result
        server.request_handlers[types.CancelTaskRequest] = cancel_task
    server.notification_handlers[types.InitializedNotification] = initialized
    return server


def _add_context(server: _Server, context: OfferedContext) -> None:
    """Add the handlers of resources and prompts."""

    def scope() -> Any:
        return scope_of(server.request_context.request)

    async def list_resources(request: Any) -> Any:
        listed = await _or_refused(context.list_resources(scope()))
        return types.ListResourcesResult.model_validate({"resources": listed})

    async def list_templates(request: Any) -> Any:
        templates = {"resourceTemplates": context.resource_templates}
        return types.ListResourceTemplatesResult.model_validate(templates)

    async def read_resource(request: Any) -> Any:
        contents = await _or_refused(context.read_resource(scope(), str(request.params.uri)))
        return types.ReadResourceResult.model_validate({"contents": contents})

    async def list_prompts(request: Any) -> Any:
        return types.ListPromptsResult.model_validate({"prompts": context.prompts})

    async def get_prompt(request: Any) -> Any:
        params = request.params
        prompt = context.prompt(scope(), params.name, dict(params.arguments or {}))
        return types.GetPromptResult.model_validate(await _or_refused(prompt))

    def as_result(handler: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def handle(request: Any) -> Any:
            return types.ServerResult(await handler(request))

        return handle

    server.request_handlers |= {
        types.ListResourcesRequest: as_result(list_resources),
        types.ListResourceTemplatesRequest: as_result(list_templates),
        types.ReadResourceRequest: as_result(read_resource),
        types.ListPromptsRequest: as_result(list_prompts),
        types.GetPromptRequest: as_result(get_prompt),
    }


async def _or_refused(work: Awaitable[T]) -> T:
    """Await work on a request; one that cannot be answered becomes an error of the protocol."""
    try:
        return await work
    except OhJupyterError as error:
        data = types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
        raise McpError(data) from error


def _task(details: dict[str, Any]) -> dict[str, Any]:
    """Convert a task to the format of 2025-11-25, where the result is requested separately."""
    separate = ("result", "inputRequests")
    task = {name: value for name, value in details.items() if name not in separate}
    ttl_ms = task.pop("ttlMs") or MAX_TTL_MS
    return {**task, "ttl": ttl_ms, "pollInterval": task.pop("pollIntervalMs")}
