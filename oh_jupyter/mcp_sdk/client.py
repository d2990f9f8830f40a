"""A session with an MCP server, by streams."""

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
"""Seconds that a server has to take the news that a call is cancelled."""

GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What a stream raises whose other end is closed."""

logger = logging.getLogger(__name__)


class Session:
    """A session, from ``async with`` to its end."""

    def __init__(
        self,
        reading: Any,
        writing: Any,
        *,
        name: str,
        version: str,
        tools_changed: Callable[[], Awaitable[None]],
    ) -> None:
        """Prepare; ``tools_changed`` is called, one call at a time, when the server says so."""
        client = types.Implementation(name=name, version=version)
        self._session = ClientSession(
            reading, writing, client_info=client, message_handler=self._heard
        )
        self._tools_changed = tools_changed
        self._stack = AsyncExitStack()
        self._calls: set[anyio.CancelScope] = set()
        self._ended = False

    async def __aenter__(self) -> Self:
        """Begin: the server is told who we are."""
        async with AsyncExitStack() as stack:
            send, changes = anyio.create_memory_object_stream[None](1)
            self._changes = stack.enter_context(send)
            stack.enter_context(changes)
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            await stack.enter_async_context(self._session)
            await self._session.initialize()
            # Major 1 reads no further while a handler works.
            group.start_soon(self._follow, changes)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *problem: Any) -> bool | None:
        """End, and with it the calls that have no answer: major 1 would let them wait."""
        self._ended = True
        for scope in list(self._calls):
            scope.cancel()
        return await self._stack.__aexit__(*problem)

    async def _heard(self, message: Any) -> None:
        notification = getattr(message, "root", message)
        if getattr(notification, "method", "") == LIST_CHANGED:
            with suppress(anyio.WouldBlock, anyio.ClosedResourceError):
                self._changes.send_nowait(None)

    async def _follow(self, changes: AsyncIterable[None]) -> None:
        async for _ in changes:
            try:
                await self._tools_changed()
            except Exception as problem:
                logger.warning("Changed tools cannot be listed: %s", problem)

    async def tools(self) -> list[dict[str, Any]]:
        """All tools of the server, page by page."""
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
        """Call a tool; when this is cancelled, so is the call."""
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
            # Major 1 leaves it to whoever calls to tell the server.
            if major() == 1 and not self._ended:
                await self._cancel(request_id)
            raise

    async def _cancel(self, request_id: Any) -> None:
        params = types.CancelledNotificationParams(requestId=request_id)
        cancelled = types.ClientNotification(types.CancelledNotification(params=params))
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(*GONE):
            await self._session.send_notification(cancelled)


def _wire(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def default_environment() -> dict[str, str]:
    """What of our environment a server that we start may see."""
    environment: dict[str, str] = get_default_environment()
    return environment
