"""A session with an MCP server over streams."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

import anyio
from mcp import ClientSession
from mcp.client.stdio import get_default_environment

from oh_jupyter.mcp_sdk import major

if major() == 1:
    from mcp import types
else:
    import mcp_types as types

LIST_CHANGED = "notifications/tools/list_changed"

CANCEL_SECONDS = 2.0
"""Timeout for notifying a server of a cancelled call."""

GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)
"""Errors of a stream whose other end is closed."""

logger = logging.getLogger(__name__)


class Session:
    """A session as an asynchronous context manager."""

    def __init__(
        self,
        reading: Any,
        writing: Any,
        *,
        name: str,
        version: str,
        tools_changed: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the streams; ``tools_changed`` is awaited once for each change of the tools."""
        client = types.Implementation(name=name, version=version)
        self._session = ClientSession(
            reading, writing, client_info=client, message_handler=self._receive
        )
        self._tools_changed = tools_changed
        self._stack = AsyncExitStack()
        self._calls: set[anyio.CancelScope] = set()
        self._ended = False

    async def __aenter__(self) -> Self:
        """Initialize the session."""
        async with AsyncExitStack() as stack:
            send, changes = anyio.create_memory_object_stream[None](1)
            self._changes = stack.enter_context(send)
            stack.enter_context(changes)
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            await stack.enter_async_context(self._session)
            await self._session.initialize()
            # Major 1 reads no messages while a handler runs.
            group.start_soon(self._follow, changes)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        """End the session and its pending calls: major 1 would leave them waiting."""
        self._ended = True
        for scope in list(self._calls):
            scope.cancel()
        return await self._stack.__aexit__(*error)

    async def _receive(self, message: Any) -> None:
        notification = getattr(message, "root", message)
        if getattr(notification, "method", "") == LIST_CHANGED:
            with suppress(anyio.WouldBlock, anyio.ClosedResourceError):
                self._changes.send_nowait(None)

    async def _follow(self, changes: AsyncIterable[None]) -> None:
        async for _ in changes:
            try:
                await self._tools_changed()
            except Exception as error:
                logger.warning("Changed tools cannot be listed: %s", error)

    async def tools(self) -> list[dict[str, Any]]:
        """Return all tools of the server."""
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = _wire(await self._session.list_tools(params=params))
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor:
                return tools

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; cancelling this coroutine cancels the call."""
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                return await self._call(tool, arguments)
            finally:
                self._calls.discard(scope)
        raise ConnectionError("it has ended before it answered")

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        request_id = getattr(self._session, "_request_id", None)
        try:
            return _wire(await self._session.call_tool(tool, arguments))
        except anyio.get_cancelled_exc_class():
            # With major 1, the caller must notify the server.
            if major() == 1 and not self._ended:
                await self._cancel(request_id)
            raise

    async def _cancel(self, request_id: Any) -> None:
        params = types.CancelledNotificationParams(requestId=request_id)
        cancelled = types.ClientNotification(types.CancelledNotification(params=params))
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(*GONE):
            await self._session.send_notification(cancelled)


def _wire(model: Any) -> dict[str, Any]:
    wire: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def default_environment() -> dict[str, str]:
    """Return the part of our environment that a server we start inherits."""
    environment: dict[str, str] = get_default_environment()
    return environment
