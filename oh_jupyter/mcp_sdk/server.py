"""A server of tools behind streamable HTTP and SSE, as ASGI applications."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from oh_jupyter.mcp_sdk import major
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedTools

if major() == 1:
    from oh_jupyter.mcp_sdk.server_v1 import TOOLS_CHANGED, make_server
else:
    from oh_jupyter.mcp_sdk.server_v2 import TOOLS_CHANGED, make_server

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class ToolServer:
    """Sessions that all see the same tools.

    With major 2 of the SDK it also answers the requests of 2026-07-28, which need no session;
    major 1 tells such clients that a session is missing.
    """

    def __init__(
        self,
        tools: OfferedTools,
        *,
        name: str,
        version: str,
        instructions: str,
        messages_path: str,
        max_body_bytes: int,
    ) -> None:
        """Prepare; it serves while ``running`` is entered.

        Clients of SSE send messages to ``messages_path``, below the scope's root path.
        """
        self._changes = ChangeBus()
        self._server = make_server(
            tools, self._changes, name=name, version=version, instructions=instructions
        )
        limit = {"max_request_body_size": max_body_bytes}
        self._manager = StreamableHTTPSessionManager(
            self._server, **_known(StreamableHTTPSessionManager, limit)
        )
        self._sse = SseServerTransport(messages_path, **_known(SseServerTransport, limit))

    @property
    def listeners(self) -> int:
        """How many sessions want to hear of other tools."""
        return len(self._changes)

    async def announce_change(self) -> None:
        """Tell every session that the tools are others now."""
        await self._changes.publish(TOOLS_CHANGED)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the sessions of streamable HTTP."""
        _keep_quiet()
        async with self._manager.run():
            yield

    async def http(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request of streamable HTTP."""
        await self._manager.handle_request(scope, receive, send)

    async def messages(self, scope: Any, receive: Receive, send: Send) -> None:
        """Take a message for a session of SSE."""
        await self._sse.handle_post_message(scope, receive, send)

    async def sse(self, scope: Any, receive: Receive, send: Send) -> None:
        """Hold a session of SSE for as long as the client stays."""
        async with self._sse.connect_sse(scope, receive, send) as (receiving, sending):
            options = self._server.create_initialization_options()
            await self._server.run(receiving, sending, options)


def _known(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options that a function takes; older releases know fewer."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in names}


def _keep_quiet() -> None:
    """Keep sse_starlette from asking twice a second whether uvicorn stops: there is none.

    Its responses share one watcher for each thread, which is started unless it is there.
    """
    from sse_starlette import sse

    with suppress(AttributeError):
        sse._get_shutdown_state().watcher_started = True
