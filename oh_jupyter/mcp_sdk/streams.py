"""Streams that carry messages: our own pipes, and a server's address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server

from oh_jupyter.mcp_sdk import major

__all__ = ["http_streams", "stdio_streams"]

CONNECT_SECONDS = 30.0
"""Seconds until a server must have been reached."""


def stdio_streams() -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Our own standard input and output, to read messages from and to write them to."""
    streams: AbstractAsyncContextManager[tuple[Any, Any]] = stdio_server()
    return streams


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """A server's address, to read messages from and to write them to."""
    # Each major has an HTTP client of its own.
    http = import_module("httpx" if major() == 1 else "httpx2")
    # A cell may take hours; what keeps a request alive is the connection.
    timeout = http.Timeout(CONNECT_SECONDS, read=None)
    async with (
        http.AsyncClient(headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams[0], streams[1]
