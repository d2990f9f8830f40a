"""A server of tools behind streamable HTTP and SSE, as ASGI applications."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from oh_jupyter.mcp_sdk import major
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedContext, OfferedTools

if major() == 1:
    from oh_jupyter.mcp_sdk.server_v1 import TOOLS_CHANGED, make_server
else:
    from oh_jupyter.mcp_sdk.server_v2 import TOOLS_CHANGED, make_server

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class McpService:
    """Sessions that all see the same tools.

    With major 2 of the SDK it also serves the sessionless requests of 2026-07-28; major 1 rejects
    them for the missing session.
    """

    def __init__(
        self,
        tools: OfferedTools,
        context: OfferedContext,
        *,
        name: str,
        version: str,
        instructions: str,
        messages_path: str,
        max_body_bytes: int,
    ) -> None:
        """Make a server that serves while ``running`` is entered.

        Clients of SSE send messages to ``messages_path``, below the scope's root path.
        """
        self._changes = ChangeBus()
        self._server = make_server(
            tools,
            self._changes,
            context=context,
            name=name,
            version=version,
            instructions=instructions,
        )
        limit = {"max_request_body_size": max_body_bytes}
        self._manager = StreamableHTTPSessionManager(
            self._server, **_supported(StreamableHTTPSessionManager, limit)
        )
        self._sse = SseServerTransport(messages_path, **_supported(SseServerTransport, limit))

    @property
    def listeners(self) -> int:
        """Number of sessions that follow changes of the tools."""
        return len(self._changes)

    async def announce_change(self) -> None:
        """Notify every session that the tools have changed."""
        await self._changes.publish(TOOLS_CHANGED)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the sessions of streamable HTTP open."""
        _disable_exit_watcher()
        async with self._manager.run():
            yield

    async def http(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve a request of streamable HTTP."""
        await self._manager.handle_request(scope, receive, send)

    async def messages(self, scope: Any, receive: Receive, send: Send) -> None:
        """Take a message for a session of SSE."""
        await self._sse.handle_post_message(scope, receive, send)

    async def sse(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve a session of SSE until the client disconnects."""
        async with self._sse.connect_sse(scope, receive, send) as (receiving, sending):
            options = self._server.create_initialization_options()
            await self._server.run(receiving, sending, options)


def _supported(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a function takes; older releases have fewer."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in names}


def _disable_exit_watcher() -> None:
    """Keep sse_starlette from polling twice a second whether uvicorn stops: there is none.

    Its responses share a watcher per thread, which they start unless it exists.
    """
    from sse_starlette import sse

    with suppress(AttributeError):
        sse._get_shutdown_state().watcher_started = True
