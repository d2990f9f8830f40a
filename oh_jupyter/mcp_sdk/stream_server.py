"""A server of tools for clients on streams of bytes, with a message of JSON in each line."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from oh_jupyter.mcp_sdk import major
from oh_jupyter.mcp_sdk.json_rpc import decode, encode
from oh_jupyter.mcp_sdk.offered import ChangeBus, OfferedTools

if major() == 1:
    from oh_jupyter.mcp_sdk.server_v1 import TOOLS_CHANGED, make_server
else:
    from oh_jupyter.mcp_sdk.server_v2 import TOOLS_CHANGED, make_server

GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)
"""Errors of a stream whose other end is closed."""


class StreamServer:
    """Sessions on streams, which all see the same tools; calls end with their client."""

    def __init__(self, tools: OfferedTools, *, name: str, version: str, instructions: str) -> None:
        self._changes = ChangeBus()
        self._server = make_server(
            tools,
            self._changes,
            has_tasks=False,
            name=name,
            version=version,
            instructions=instructions,
        )

    async def announce_change(self) -> None:
        """Notify every session that the tools have changed."""
        await self._changes.publish(TOOLS_CHANGED)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client until it disconnects, and cancel what it has left."""
        send_request, requests = anyio.create_memory_object_stream[Any](0)
        send_reply, replies = anyio.create_memory_object_stream[Any](0)

        async def receive(scope: anyio.CancelScope) -> None:
            try:
                while line := await reader.readline():
                    if line.strip():
                        await send_request.send(decode(line))
            except (*GONE, ValueError):  # the latter for a line that is too long
                pass
            finally:
                scope.cancel()

        async def send() -> None:
            async for message in replies:
                writer.write(encode(message))
                await writer.drain()

        with send_request, requests, send_reply, replies:
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(receive, group.cancel_scope)
                    group.start_soon(send)
                    options = self._server.create_initialization_options()
                    await self._server.run(requests, send_reply, options)
                    group.cancel_scope.cancel()
            except* GONE:
                pass
