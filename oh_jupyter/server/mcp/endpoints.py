"""The MCP sessions of each kernel, and the execution of their tool calls."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import anyio
from tornado import web

from oh_jupyter._version import __version__
from oh_jupyter.background import run_in_background
from oh_jupyter.errors import LimitExceededError, OhJupyterError, ServerError
from oh_jupyter.events.actor import Actor, current_actor
from oh_jupyter.mcp_sdk.offered import Retry, ToolRequest
from oh_jupyter.mcp_tools.app_tools import apps_are_built
from oh_jupyter.mcp_tools.kernel import CallActions, current_actions
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.progress import report_progress
from oh_jupyter.mcp_tools.resources import PROMPTS, TEMPLATES, Resources, messages_of
from oh_jupyter.mcp_tools.results import Result, failure
from oh_jupyter.mcp_tools.seen_lines import SeenBySession
from oh_jupyter.mcp_tools.toolbox import INSTRUCTIONS, Caller, Toolbox
from oh_jupyter.mcp_tools.tools_in_kernel import ToolsInKernel
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.links import is_confined
from oh_jupyter.server.mcp.app_approval import AppApprovals, with_approval
from oh_jupyter.server.mcp.approval import while_asking
from oh_jupyter.server.mcp.asgi import Asgi, Exchange, Message
from oh_jupyter.server.mcp.introduction import Introduction
from oh_jupyter.server.mcp.kernel import ServerKernel
from oh_jupyter.server.mcp.tasks import CallTasks
from oh_jupyter.server.mcp.undecided import UndecidedCalls
from oh_jupyter.server.router import KERNEL_EVENTS, Router
from oh_jupyter.server.tokens import confines
from oh_jupyter.server.unsaved import UnsavedDocuments

if TYPE_CHECKING:
    from oh_jupyter.mcp_sdk.server import McpService

T = TypeVar("T")

CALLER = "oh_jupyter.caller"
EXCHANGE = "oh_jupyter.exchange"
"""Entries of an ASGI scope with the caller and the exchange of a tool call."""
CLOSE_TIMEOUT_SECONDS = 2.0  # time that sessions get to end by themselves
MAX_CLIENT_CHARS = 100  # of a client's name
MAX_BODY_BYTES = 64 * 1024**2  # largest message, such as a file to write
MESSAGES_PATH = "/mcp/messages/"
_SSE_SESSION = re.compile(rb"session_id=([0-9a-f]+)")

SDK = "oh_jupyter.mcp_sdk.server"
"""Takes half a second and 25 MB, so it is imported in a thread when the first client comes."""


class McpEndpoint:
    """The sessions of one kernel, which all have the same tools."""

    def __init__(
        self,
        toolbox: Toolbox,
        resources: Resources,
        tasks: CallTasks,
        root_path: str,
        tool_server: type[McpService],
        *,
        approval_by_client: bool,
        approvals: AppApprovals,
        introduction: Introduction | None = None,
    ) -> None:
        """Make an endpoint below the path that clients see; ``start`` opens it.

        ``introduction`` follows the first result of each session.
        """
        self._toolbox = toolbox
        self._introduction = introduction
        self._approval_by_client = approval_by_client
        self._approvals = approvals
        self._tasks = tasks
        self._undecided = UndecidedCalls()
        self._seen = SeenBySession()
        self._root_path = root_path
        self._resources = resources
        self._server = tool_server(
            self,
            self,
            name="oh_jupyter",
            version=__version__,
            instructions=INSTRUCTIONS,
            messages_path=MESSAGES_PATH,
            max_body_bytes=MAX_BODY_BYTES,
        )
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._exchanges: dict[asyncio.Task[None], Exchange] = {}

    async def start(self) -> None:
        """Open for sessions."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                async with self._server.running():
                    started.set_result(None)
                    await self._stop.wait()
            except Exception as error:
                if started.done():
                    raise
                started.set_exception(error)

        self._running = asyncio.create_task(run())
        await started

    @property
    def listeners(self) -> int:
        """Number of sessions that follow changes of the tools."""
        return self._server.listeners

    async def close(self) -> None:
        """End all sessions, and cancel their calls."""
        self._toolbox.close()
        self._undecided.close()
        tasks = list(self._exchanges)
        # As if all clients had disconnected, so that the SDK ends its sessions in order.
        for exchange in list(self._exchanges.values()):
            exchange.gone.set()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_SECONDS)
        for task in tasks:
            task.cancel()
        self._stop.set()
        waiting = [*tasks, *([self._running] if self._running else [])]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def serve(self, transport: str, exchange: Exchange, caller: Caller) -> None:
        """Serve a request to a transport: "http" for streamable HTTP, "sse" or "messages"."""
        exchange.scope.update({"root_path": self._root_path, CALLER: caller, EXCHANGE: exchange})
        application: Asgi = getattr(self._server, transport)
        session = ""

        async def send(message: Message) -> None:
            nonlocal session
            if not session and (match := _SSE_SESSION.search(message.get("body", b""))):
                session = match[1].decode()
            await exchange.send(message)

        await self._serve(application, exchange, send if transport == "sse" else exchange.send)
        if exchange.scope["method"] == "DELETE":
            session = caller.actor.session
        if session:
            self._undecided.end_session((caller.principal, session))

    async def _serve(
        self, application: Asgi, exchange: Exchange, send: Callable[[Message], Awaitable[None]]
    ) -> None:
        work = application(exchange.scope, exchange.receive, send)
        task = asyncio.ensure_future(work)
        self._exchanges[task] = exchange
        try:
            await task
        except asyncio.CancelledError:
            # The server stops; a cancelled handler cancels its work.
            task.cancel()
        finally:
            self._exchanges.pop(task, None)

    async def tools_changed(self) -> None:
        """Notify every session that the tools have changed."""
        await self._server.announce_change()

    @property
    def has_apps(self) -> bool:
        """Whether there are MCP Apps, see ``OfferedContext``."""
        return apps_are_built()

    async def list_tools(self, *, has_apps: bool) -> list[dict[str, Any]]:
        """List the tools, see ``OfferedTools``."""
        has_apps = has_apps and self.has_apps
        tools = await self._toolbox.tools(has_apps=has_apps)
        if has_apps and self._approval_by_client:
            tools = [with_approval(tool) for tool in tools]
        return [tool.to_wire() for tool in tools]

    async def call_tool(self, call: ToolRequest) -> Result:
        """Execute a call, see ``OfferedTools``."""
        if self._is_of_app(call.name) and not call.has_apps:
            return failure(f"Only an MCP App calls {call.name}, and the client shows none.")
        if self._asks_by_retry(call) and not self._is_of_app(call.name):
            return await self._call_with_retries(call)
        actions, work = CallActions(), self._work(call)
        current_actions.set(actions)
        caller: Caller = call.scope[CALLER]
        if self._approval_by_client and call.elicit is not None:
            work = partial(while_asking, work, actions, call.elicit)
        elif not (self._approval_by_client and call.has_apps) and not caller.actor.guest:
            # Its person is somewhere else; a guest's looks at its conversation.
            owner = (caller.principal, _connection_of(call))
            work = self._undecided.begin(call, owner, work, actions)
        return await _while_connected(call, work, actions)

    @property
    def resource_templates(self) -> list[dict[str, Any]]:
        """Templates of addresses, see ``OfferedContext``."""
        return TEMPLATES

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """Descriptions of the prompts, see ``OfferedContext``."""
        return [prompt.to_wire() for prompt in PROMPTS.values()]

    async def list_resources(self, scope: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List resources, see ``OfferedContext``."""
        return await self._resources.all(_identified(scope))

    async def read_resource(self, scope: Mapping[str, Any], uri: str) -> list[dict[str, Any]]:
        """Return the contents of a resource, see ``OfferedContext``."""
        return await self._resources.read(uri, _identified(scope))

    async def prompt(
        self, scope: Mapping[str, Any], name: str, arguments: dict[str, str]
    ) -> dict[str, Any]:
        """Return the messages of a prompt, see ``OfferedContext``."""
        return await messages_of(name, arguments, self._toolbox, _identified(scope))

    def _asks_by_retry(self, call: ToolRequest) -> bool:
        return self._approval_by_client and call.retry is not None

    async def _call_with_retries(self, call: ToolRequest) -> dict[str, Any]:
        """Return the result of a call, or questions with which its client repeats it."""
        retry, owner = call.retry or Retry(), call.scope[CALLER].principal
        try:
            if retry.state:
                task = self._tasks.repeated(call, retry.state, owner)
            else:
                task = self._tasks.start(call, owner, self._work(call), asks_client=True)
        except OhJupyterError as error:
            return failure(str(error))
        if task.questions is not None:
            task.questions.respond(retry.responses)

        async def one_round() -> dict[str, Any]:
            try:
                await task.wait_for_client()
            except asyncio.CancelledError:  # the client has left
                task.stored.task.cancel()
                raise
            return task.result() if task.is_over else task.input_required()

        if task.is_over:
            return task.result()
        return await _while_connected(call, one_round, task.actions)

    async def start_task(self, call: ToolRequest, delay_seconds: float) -> Result:
        """Start a call that outlives its client, see ``OfferedTools``."""
        if self._is_of_app(call.name):  # it waits for news, and outlives nobody
            return await self.call_tool(call)
        try:
            task = self._tasks.start(
                call,
                call.scope[CALLER].principal,
                self._work(call),
                asks_client=self._asks_by_retry(call),
            )
        except LimitExceededError as error:
            return failure(str(error))

        async def first_look() -> Result:
            try:
                await task.wait(delay_seconds)
            except asyncio.CancelledError:  # nobody knows its id
                task.stored.task.cancel()
                raise
            return task.result() if task.is_over else task.handle()

        return await _while_connected(call, first_look, task.actions)

    async def task(
        self,
        scope: Mapping[str, Any],
        id: str,
        *,
        cancel: bool = False,
        wait: bool = False,
        responses: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Inspect a task, see ``OfferedTools``."""
        task = self._tasks.find(id, scope[CALLER].principal)
        if task.questions is not None and responses:
            task.questions.respond(responses)
        if cancel:
            await task.cancel()
        if wait:
            await _while_connected(ToolRequest("", {}, scope, None), task.wait, CallActions())
        return await task.details()

    def _is_of_app(self, name: str) -> bool:
        tool = self._toolbox.fixed.get(name)
        return tool is not None and tool.is_only_for_apps

    def _work(self, call: ToolRequest) -> Callable[[], Awaitable[Result]]:
        caller = _identified(call.scope)
        current_actor.set(_actor_of(call, caller))

        async def work() -> Result:
            actions = current_actions.get()
            with ExitStack() as stack:
                if actions is not None and call.has_apps and self._approval_by_client:
                    stack.enter_context(
                        self._approvals.during(call.name, call.arguments, caller, actions)
                    )
                result = await self._toolbox.call(call.name, call.arguments, caller)
            session = caller.actor.session
            if self._introduction is not None:
                result = await self._introduction.added(result, call.name, caller, session)
            return self._seen.without(result, session)

        return work


def _identified(scope: Mapping[str, Any]) -> Caller:
    """Return the caller of a request, whose requests to the kernel are from now on in its name."""
    caller: Caller = scope[CALLER]
    current_actor.set(caller.actor)
    is_confined.set(confines(caller.scopes))
    return caller


def _actor_of(call: ToolRequest, caller: Caller) -> Actor:
    """Return the caller with the client, the session and the trace context of a call."""
    return replace(
        caller.actor,
        client=call.client[:MAX_CLIENT_CHARS] or caller.actor.client,
        session=caller.actor.session or _session_of(call),
        **call.trace,
    )


def _session_of(call: ToolRequest) -> str:
    """Return what identifies the client of a request without a session, so that it has one turn.

    The protocol of 2026-07-28 offers no more than the client's name with each request. Connections
    are no identity, since clients open several and close idle ones.
    """
    if not call.client:
        return ""
    agents = [value for name, value in call.scope["headers"] if name == b"user-agent"]
    address, _ = call.scope["client"]
    identity = [call.scope[CALLER].principal, call.client, str(agents), address]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]


def _connection_of(call: ToolRequest) -> str:
    """Return what identifies the session of a call, which a client of SSE names in its query."""
    if match := _SSE_SESSION.search(call.scope["query_string"]):
        return match[1].decode()
    return current_actor.get().session


async def _while_connected(
    call: ToolRequest,
    work: Callable[[], Awaitable[T]],
    actions: CallActions,
) -> T | Result:
    """Execute a call with progress reports; cancel it when the client disconnects."""
    results: list[T] = []
    async with anyio.create_task_group() as group:

        async def gone() -> None:
            await call.scope[EXCHANGE].gone.wait()
            group.cancel_scope.cancel()

        if call.report_progress is not None:
            group.start_soon(report_progress, call, call.report_progress, actions)
        group.start_soon(gone)
        results.append(await work())
        group.cancel_scope.cancel()
    return results[0] if results else {"content": [], "isError": True}


class Endpoints:
    """The MCP endpoints of a server, by kernel."""

    def __init__(
        self,
        serverapp: Any,
        router: Router,
        touch: Callable[[], None],
        notebooks: Notebooks,
        unsaved: UnsavedDocuments,
        *,
        list_skills: bool = False,
        approval_by_client: bool = False,
    ) -> None:
        """Make no endpoint yet; ``touch`` is called when a kernel gets something to do.

        ``notebooks`` are the server's open ones. ``list_skills`` lists the agent skills for every
        client, not only on request; ``approval_by_client`` lets clients ask their person about
        waiting Actions.
        """
        self.list_skills = list_skills
        self._approval_by_client = approval_by_client
        self._serverapp = serverapp
        self._router = router
        self._touch = touch
        self._unsaved = unsaved
        self.notebooks = notebooks
        self._tasks = CallTasks()
        self._approvals = AppApprovals()
        self._endpoints: dict[str | None, McpEndpoint] = {}
        self._starting = asyncio.Lock()
        serverapp.event_logger.add_listener(schema_id=KERNEL_EVENTS, listener=self._kernel_event)

    def toolbox(self, kernel_id: str | None) -> Toolbox:
        """Return the tools for a kernel, None for the default one."""
        return self._toolbox(self._kernel(kernel_id))

    def _kernel(self, kernel_id: str | None) -> ServerKernel:
        kernel = ServerKernel(
            self._router,
            self._serverapp.kernel_manager,
            kernel_id,
            self._touch,
            lambda: run_in_background(self.tools_changed(kernel_id)),
        )
        kernel.has_listeners = lambda: self._has_listeners(kernel_id)
        return kernel

    def _toolbox(self, kernel: ServerKernel) -> Toolbox:
        from oh_jupyter.mcp_tools.tool_list import all_tools

        fixed = all_tools(self.notebooks, kernel)
        if self._approval_by_client:
            fixed += self._approvals.tools()
        taken = [tool.name for tool in fixed]
        source = ToolsInKernel(kernel, taken)
        return Toolbox(fixed, source, self._around_call, "server", on_close=kernel.close)

    @asynccontextmanager
    async def _around_call(self, tool: str) -> AsyncIterator[None]:
        """Save open documents before a call, and have them checked after it."""
        async with self._unsaved.shared():
            try:
                yield
            except web.HTTPError as error:  # of the server's contents manager
                raise ServerError(f"{tool}: {reason_of(error)}") from error

    def _has_listeners(self, kernel_id: str | None) -> bool:
        endpoint = self._endpoints.get(kernel_id)
        return endpoint is not None and endpoint.listeners > 0

    async def get(self, kernel_id: str | None) -> McpEndpoint:
        """Return the open endpoint of a kernel, None for the default one."""
        async with self._starting:
            if kernel_id not in self._endpoints:
                module = await asyncio.to_thread(import_module, SDK)
                # The SDK quotes it.
                base = unquote(self._serverapp.web_app.settings["base_url"]).rstrip("/")
                below = "" if kernel_id is None else f"/kernels/{kernel_id}"
                root_path = f"{base}/oh_jupyter{below}"
                kernel = self._kernel(kernel_id)
                tools = self._toolbox(kernel)
                endpoint = McpEndpoint(
                    tools,
                    Resources(tools, kernel),
                    self._tasks,
                    root_path,
                    module.McpService,
                    approval_by_client=self._approval_by_client,
                    approvals=self._approvals,
                    introduction=Introduction(self.notebooks) if kernel_id is None else None,
                )
                await endpoint.start()
                self._endpoints[kernel_id] = endpoint
            return self._endpoints[kernel_id]

    async def _kernel_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        """Close the endpoint of a kernel that was shut down."""
        gone = data.get("action") == "shutdown" and data.get("status") == "success"
        endpoint = self._endpoints.pop(data.get("kernel_id"), None) if gone else None
        if endpoint is not None:
            await endpoint.close()

    async def tools_changed(self, kernel_id: str | None) -> None:
        """Notify the sessions of a kernel, None for the default one, of changed tools."""
        same = {kernel_id, kernel_id or self._router.default_kernel_id}
        if kernel_id is not None and kernel_id == self._router.default_kernel_id:
            same.add(None)
        for key in same & self._endpoints.keys():
            await self._endpoints[key].tools_changed()

    async def close(self) -> None:
        """End all sessions."""
        self._serverapp.event_logger.remove_listener(listener=self._kernel_event)
        for kernel_id in list(self._endpoints):
            await self._endpoints.pop(kernel_id).close()
