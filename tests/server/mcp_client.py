"""The official SDK's client, of either major, with answers named as major 2 names them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

MAJOR = int(version("mcp").partition(".")[0])
_exceptions = import_module("mcp.shared.exceptions")
McpError: type[Exception] = _exceptions.McpError if MAJOR == 1 else _exceptions.MCPError
http_library = import_module("httpx" if MAJOR == 1 else "httpx2")

Heard = Callable[[Any], Awaitable[None]]


def named(wire: Any) -> Any:
    """JSON as objects with attributes in snake case; schemas and data stay as they are."""
    if isinstance(wire, list):
        return [named(item) for item in wire]
    if not isinstance(wire, dict):
        return wire
    plain = ("inputSchema", "outputSchema", "structuredContent", "_meta")
    return SimpleNamespace(
        **{_snake(name): value if name in plain else named(value) for name, value in wire.items()}
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


class Session:
    """A session whose answers have the same names with both majors."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def list_tools(self) -> Any:
        return named(wire(await self._session.list_tools()))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        progress_callback: Any = None,
    ) -> Any:
        request_id = getattr(self._session, "_request_id", None)
        try:
            result = await self._session.call_tool(
                name, dict(arguments or {}), progress_callback=progress_callback
            )
        except anyio.get_cancelled_exc_class():
            if MAJOR == 1:  # which leaves this to the caller
                with anyio.move_on_after(2, shield=True):
                    await self._cancel(request_id)
            raise
        answer = wire(result)
        return named({"structuredContent": None, "isError": False, **answer})

    async def list_resources(self) -> Any:
        return named(wire(await self._session.list_resources())).resources

    async def list_resource_templates(self) -> Any:
        return named(wire(await self._session.list_resource_templates())).resource_templates

    async def read_resource(self, uri: str) -> Any:
        address = types.ReadResourceRequestParams(uri=uri).uri  # major 1 takes no text
        return named(wire(await self._session.read_resource(address))).contents

    async def list_prompts(self) -> Any:
        return named(wire(await self._session.list_prompts())).prompts

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> Any:
        return named(wire(await self._session.get_prompt(name, arguments))).messages

    async def _cancel(self, request_id: Any) -> None:
        from mcp import types

        params = types.CancelledNotificationParams(requestId=request_id)
        notification = types.ClientNotification(types.CancelledNotification(params=params))
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._session.send_notification(notification)


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def wire(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


@asynccontextmanager
async def _session(
    streams: Any, heard: Heard | None = None, elicited: Any = None, name: str = "mcp"
) -> AsyncIterator[Session]:
    async def listen(message: Any) -> None:
        if heard is not None:
            await heard(getattr(message, "root", message))

    info = types.Implementation(name=name, version="1")
    async with ClientSession(
        *streams[:2], message_handler=listen, elicitation_callback=elicited, client_info=info
    ) as session:
        await session.initialize()
        yield Session(session)


@asynccontextmanager
async def connected(
    url: str,
    *,
    transport: str = "http",
    headers: Mapping[str, str] | None = None,
    heard: Heard | None = None,
    query: str = "",
    elicited: Any = None,
    name: str = "mcp",
) -> AsyncIterator[Session]:
    """A session by streamable HTTP or SSE, or a client without one ("sessionless", major 2).

    ``elicited`` responds to forms for the person, ``name`` is what the client calls itself.
    """
    async with AsyncExitStack() as stack:
        if transport == "sessionless":
            yield await stack.enter_async_context(
                sessionless(url + query, headers=headers, elicited=elicited, name=name)
            )
            return
        if transport == "sse":
            opened: Any = sse_client(f"{url}/sse{query}", headers=dict(headers or {}))
        else:
            client = http_library.AsyncClient(headers=dict(headers or {}), timeout=60)
            await stack.enter_async_context(client)
            opened = streamable_http_client(url + query, http_client=client)
        streams = await stack.enter_async_context(opened)
        yield await stack.enter_async_context(_session(streams, heard, elicited, name))


@asynccontextmanager
async def sessionless(
    url: str, *, headers: Mapping[str, str] | None, elicited: Any, name: str
) -> AsyncIterator[Session]:
    """A client of 2026-07-28, which repeats calls whose result requires input."""
    from mcp.client.client import Client
    from mcp_types import Implementation

    http = http_library.AsyncClient(headers=dict(headers or {}), timeout=60)
    info = Implementation(name=name, version="1")
    transport = streamable_http_client(url, http_client=http)
    async with http, Client(transport, elicitation_callback=elicited, client_info=info) as client:
        yield Session(client)


@asynccontextmanager
async def launched(command: str, *arguments: str, env: Mapping[str, str]) -> AsyncIterator[Session]:
    """A session with a program that is started for it."""
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(env))
    async with stdio_client(server) as streams, _session(streams) as session:
        yield session
