"""A low-level server of major 2: sessions, and the sessionless requests of 2026-07-28."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.client_of import (
    client_name,
    elicit_during,
    has_forms,
    scope_of,
    shows_apps,
)
from oh_jupyter.mcp_sdk.offered import (
    APPS,
    ChangeBus,
    OfferedContext,
    OfferedTools,
    Retry,
    ToolRequest,
)
from oh_jupyter.trace_context import trace_of

T = TypeVar("T")

TOOLS_CHANGED = ToolsListChanged()
"""The SDK's event for changed tools."""

LIST_CACHING = {"ttlMs": 60_000, "cacheScope": "private"}
"""How a sessionless client may cache a list of tools or prompts, which depends on its token."""

NO_CACHING = {"ttlMs": 0, "cacheScope": "private"}
"""The same for notebooks and other files, of whose changes a client is not notified."""

TASKS = "io.modelcontextprotocol/tasks"
"""Extension for calls that outlive their client."""

TASK_DELAY_SECONDS = 1.0
"""Time after which a call becomes a task; the result of a quicker one is sent at once."""


class _TaskParams(types.RequestParams):
    task_id: str


class _TaskUpdateParams(_TaskParams):
    input_responses: types.InputResponses | None = None


class _Server(Server):
    """A server that announces that its tools may change, which the session manager omits."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


def make_server(
    tools: OfferedTools,
    changes: ChangeBus,
    *,
    context: OfferedContext | None = None,
    has_tasks: bool = True,
    **description: Any,
) -> Any:
    """Make a server of tools that passes ``changes`` on to its clients."""

    async def list_tools(ctx: Any, params: Any) -> Any:
        try:
            listed = await tools.list_tools(has_apps=shows_apps(ctx.session))
        except OhJupyterError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return types.ListToolsResult.model_validate({"tools": listed, **LIST_CACHING})

    async def call_tool(ctx: Any, params: Any) -> Any:
        async def report(progress: float, message: str) -> None:
            await ctx.session.report_progress(progress, None, message)

        arguments, scope = dict(params.arguments or {}), scope_of(ctx.request)
        # Such a request has no way back to its client.
        is_sessionless = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        call = ToolRequest(
            params.name,
            arguments,
            scope,
            report if _wants_progress(ctx) else None,
            None if is_sessionless else elicit_during(ctx.session, ctx.request_id),
            client_name(ctx.session),
            _retry(ctx, params),
            trace_of(ctx.meta or {}),
            shows_apps(ctx.session),
        )
        if not (has_tasks and _supports_tasks(ctx)):
            result = await tools.call_tool(call)
            if "inputRequests" in result:
                return types.InputRequiredResult.model_validate(result)
            return types.CallToolResult.model_validate(result)
        result = await tools.start_task(call, TASK_DELAY_SECONDS)
        if "taskId" in result:
            return {**result, "resultType": "task"}
        return types.CallToolResult.model_validate(result)

    async def task(ctx: Any, params: _TaskParams, **change: Any) -> dict[str, Any]:
        if not _supports_tasks(ctx):
            missing: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            message = f"The client has not declared the extension {TASKS}"
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, missing)
        try:
            return await tools.task(scope_of(ctx.request), params.task_id, **change)
        except OhJupyterError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    async def update_task(ctx: Any, params: _TaskUpdateParams) -> dict[str, Any]:
        await task(ctx, params, responses=_responses(params))
        return {}

    async def cancel_task(ctx: Any, params: _TaskParams) -> dict[str, Any]:
        await task(ctx, params, cancel=True)
        return {}

    async def follow_changes(ctx: Any, params: Any) -> None:
        # Ends with the session. Newer clients send a request to subscribe.
        await changes.follow(ctx.session.send_tool_list_changed)

    server = _Server(
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(changes),
        **_no_input_schemas(),
        **({} if context is None else _context_handlers(context)),
        **description,
    )
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, follow_changes
    )
    if context is not None and context.has_apps:
        server.extensions[APPS] = {}
    if has_tasks:
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", _TaskParams, task)
        server.add_request_handler("tasks/update", _TaskUpdateParams, update_task)
        server.add_request_handler("tasks/cancel", _TaskParams, cancel_task)
    return server


def _context_handlers(context: OfferedContext) -> dict[str, Any]:
    """Return the handlers of resources and prompts."""

    async def list_resources(ctx: Any, params: Any) -> Any:
        listed = await _or_refused(context.list_resources(scope_of(ctx.request)))
        return types.ListResourcesResult.model_validate({"resources": listed, **NO_CACHING})

    async def list_templates(ctx: Any, params: Any) -> Any:
        return types.ListResourceTemplatesResult.model_validate(
            {"resourceTemplates": context.resource_templates, **LIST_CACHING}
        )

    async def read_resource(ctx: Any, params: Any) -> Any:
        contents = await _or_refused(context.read_resource(scope_of(ctx.request), str(params.uri)))
        return types.ReadResourceResult.model_validate({"contents": contents, **NO_CACHING})

    async def list_prompts(ctx: Any, params: Any) -> Any:
        return types.ListPromptsResult.model_validate({"prompts": context.prompts, **LIST_CACHING})

    async def get_prompt(ctx: Any, params: Any) -> Any:
        prompt = context.prompt(scope_of(ctx.request), params.name, dict(params.arguments or {}))
        return types.GetPromptResult.model_validate(await _or_refused(prompt))

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_list_prompts": list_prompts,
        "on_get_prompt": get_prompt,
    }


async def _or_refused(work: Awaitable[T]) -> T:
    """Await work on a request; one that cannot be answered becomes an error of the protocol."""
    try:
        return await work
    except OhJupyterError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from error


def _supports_tasks(ctx: Any) -> bool:
    """Return whether a sessionless request declares support for tasks."""
    capabilities = ctx.session.client_capabilities
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern and capabilities is not None and TASKS in (capabilities.extensions or {})


def _retry(ctx: Any, params: Any) -> Retry | None:
    """Return what a sessionless request repeats, or None if its client cannot ask its person."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or not has_forms(ctx.session):
        return None
    return Retry(params.request_state or "", _responses(params))


def _responses(params: Any) -> dict[str, dict[str, Any]]:
    wire: dict[str, Any] = params.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire.get("inputResponses") or {}


def _no_input_schemas() -> dict[str, Any]:
    """Return options that keep calls from listing all tools, to look for header arguments."""
    name = "get_tool_input_schema"
    return {name: lambda tool: None} if name in inspect.signature(Server).parameters else {}


def _wants_progress(ctx: Any) -> bool:
    meta = ctx.meta or {}
    return "progress_token" in meta or "progressToken" in meta
