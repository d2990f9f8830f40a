"""The MCP sessions of one address: a server of the official SDK behind its two transports.

This module imports the SDK, which takes half a second: import it in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ServerEvent,
    ToolsListChanged,
)

from oh_jupyter._version import __version__
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.server.mcp.bridge import Exchange
from oh_jupyter.server.mcp.kernel import Kernel, under_way
from oh_jupyter.server.mcp.results import Result
from oh_jupyter.server.mcp.toolbox import Caller, Toolbox

__all__ = ["McpEndpoint"]

CALLER = "oh_jupyter.caller"
EXCHANGE = "oh_jupyter.exchange"
"""Entries of an ASGI scope by which a tool call finds who called, and whether they are there."""

PROGRESS_INTERVAL = 1.0
"""Seconds between two signs of life of a call."""

CLOSING = 2.0
"""Seconds that sessions get to end by themselves."""

MAX_BODY = 64 * 1024**2
"""Bytes that a message may have; a file to write is one."""

MESSAGES = "/mcp/messages/"

INSTRUCTIONS = (
    "These tools work in a running Jupyter kernel that you share with a person, who sees what you "
    "do: the cells that you run with run_ipython use the person's variables, the shell of run "
    "keeps its state, edits can be undone. The notebook tools read and change the person's open "
    "notebooks."
)


class _Server(Server[Any]):
    """A server that says that its tools may change: the session manager leaves that out."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


class _Bus(InMemorySubscriptionBus):
    """Knows how many listen."""

    listeners = 0

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        inner = super().subscribe(listener)
        self.listeners += 1
        undone = False

        def unsubscribe() -> None:
            nonlocal undone
            self.listeners -= not undone
            undone = True
            inner()

        return unsubscribe


class McpEndpoint:
    """The sessions of one address, which all see the same tools."""

    def __init__(self, toolbox: Toolbox, root_path: str) -> None:
        """Make an endpoint; ``start`` opens it.

        Args:
            toolbox: The tools.
            root_path: The path that ``/mcp`` is below, as clients see it.
        """
        self._toolbox = toolbox
        self._root_path = root_path
        self._bus = _Bus()
        self._server = _Server(
            "oh_jupyter",
            version=__version__,
            instructions=INSTRUCTIONS,
            # Otherwise each call would first list all tools, to look for arguments in headers.
            get_tool_input_schema=lambda name: None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self._server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._follow_changes
        )
        self._manager = StreamableHTTPSessionManager(self._server, max_request_body_size=MAX_BODY)
        self._sse = SseServerTransport(MESSAGES, max_request_body_size=MAX_BODY)
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._exchanges: dict[asyncio.Future[None], Exchange] = {}

    async def start(self) -> None:
        """Open for sessions."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                async with self._manager.run():
                    started.set_result(None)
                    await self._stop.wait()
            except Exception as problem:
                if started.done():
                    raise
                started.set_exception(problem)

        _keep_quiet()
        self._running = asyncio.create_task(run())
        await started

    @property
    def listeners(self) -> int:
        """How many sessions want to hear of other tools."""
        return self._bus.listeners

    async def close(self) -> None:
        """End all sessions; what their calls have under way is cancelled."""
        self._toolbox.close()
        tasks = list(self._exchanges)
        # As if all clients had left: so the SDK ends its sessions in good order.
        for exchange in list(self._exchanges.values()):
            exchange.gone.set()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING)
        for task in tasks:
            task.cancel()
        self._stop.set()
        waiting = [*tasks, *([self._running] if self._running else [])]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def http(self, exchange: Exchange, caller: Caller) -> None:
        """Answer a request to ``/mcp``: streamable HTTP.

        Args:
            exchange: The request.
            caller: Who sent it.
        """
        await self._serve(exchange, caller, exchange.run(self._manager.handle_request))

    async def messages(self, exchange: Exchange, caller: Caller) -> None:
        """Take a message for a session of the SSE transport.

        Args:
            exchange: The request.
            caller: Who sent it.
        """
        await self._serve(exchange, caller, exchange.run(self._sse.handle_post_message))

    async def sse(self, exchange: Exchange, caller: Caller) -> None:
        """Hold a session of the SSE transport, for as long as the client stays.

        Args:
            exchange: The request.
            caller: Who sent it.
        """
        await self._serve(exchange, caller, self._session(exchange))

    async def _session(self, exchange: Exchange) -> None:
        async with self._sse.connect_sse(exchange.scope, exchange.receive, exchange.send) as (
            receiving,
            sending,
        ):
            options = self._server.create_initialization_options()
            await self._server.run(receiving, sending, options)

    async def _serve(self, exchange: Exchange, caller: Caller, work: Awaitable[None]) -> None:
        exchange.scope.update({"root_path": self._root_path, CALLER: caller, EXCHANGE: exchange})
        task = asyncio.ensure_future(work)
        self._exchanges[task] = exchange
        try:
            await task
        except asyncio.CancelledError:
            # The server stops; a handler that is cancelled itself takes its work along.
            task.cancel()
        finally:
            self._exchanges.pop(task, None)

    async def tools_changed(self) -> None:
        """Tell every session that the tools are others now."""
        await self._bus.publish(ToolsListChanged())

    async def _follow_changes(self, ctx: Any, params: Any) -> None:
        """Tell one session of changes until it ends, which cancels this.

        Clients of the protocol's newer revisions subscribe by a request of their own.
        """
        send, receive = anyio.create_memory_object_stream[Any](1)

        def changed(event: Any) -> None:
            with suppress(anyio.WouldBlock):  # one that it has not heard of yet will do
                send.send_nowait(event)

        unsubscribe = self._bus.subscribe(changed)
        try:
            with send, receive:
                async for _ in receive:
                    await ctx.session.send_tool_list_changed()
        finally:
            unsubscribe()

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        try:
            tools = await self._toolbox.tools()
        except OhJupyterError as problem:
            raise _refusal(problem) from problem
        return types.ListToolsResult.model_validate({"tools": [tool.to_wire() for tool in tools]})

    async def _call_tool(self, ctx: Any, params: Any) -> types.CallToolResult:
        scope = ctx.request.scope
        caller: Caller = scope[CALLER]
        work = partial(self._toolbox.call, params.name, dict(params.arguments or {}), caller)
        noted: list[tuple[Kernel, str]] = []
        under_way.set(noted)
        telling = partial(_tell_progress, ctx.session, noted) if _wants_progress(ctx) else None
        found = await _while_there(scope[EXCHANGE], work, telling)
        return types.CallToolResult.model_validate(found)


def _wants_progress(ctx: Any) -> bool:
    meta = ctx.meta or {}
    return "progress_token" in meta or "progressToken" in meta


async def _tell_progress(session: Any, noted: list[tuple[Kernel, str]]) -> None:
    """Tell the last lines of what is put out, or for how long it has been silent."""
    started = time.monotonic()
    while True:
        seconds, lines = time.monotonic() - started, ""
        if noted:
            kernel, kind = noted[-1]
            with suppress(OhJupyterError):
                lines = await kernel.peek(kind)
        await session.report_progress(seconds, None, lines or f"running for {seconds:.0f} s")
        await asyncio.sleep(PROGRESS_INTERVAL)


async def _while_there(
    exchange: Exchange,
    work: Callable[[], Awaitable[Result]],
    telling: Callable[[], Coroutine[Any, Any, None]] | None,
) -> Result:
    """Carry a call out with signs of life; a client that goes away cancels it."""
    found: list[Result] = []
    async with anyio.create_task_group() as group:

        async def gone() -> None:
            await exchange.gone.wait()
            group.cancel_scope.cancel()

        if telling is not None:
            group.start_soon(telling)
        group.start_soon(gone)
        found.append(await work())
        group.cancel_scope.cancel()
    return found[0] if found else {"content": [], "isError": True}


def _refusal(problem: OhJupyterError) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(types.INTERNAL_ERROR, str(problem))


def _keep_quiet() -> None:
    """Keep sse_starlette from asking twice a second whether uvicorn stops: there is none.

    Its responses share one watcher for each thread, which is started unless it is there.
    """
    from sse_starlette import sse

    with suppress(AttributeError):
        sse._get_shutdown_state().watcher_started = True
