"""``oh-jupyter mcp``: a server's tools for clients that start a program and talk to its pipes.

It passes messages on as they are, between standard input and output on one side and
streamable HTTP on the other. Standard output belongs to the protocol: everything else
that there is to say goes to standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio

from oh_jupyter.mcp_sdk.messages import without_metadata
from oh_jupyter.mcp_sdk.streams import http_streams, stdio_streams
from oh_jupyter.server.running import RunningServer

__all__ = ["run"]


def run(server: RunningServer) -> None:
    """Relay until the client closes our standard input."""
    anyio.run(_relay, server)


async def _relay(server: RunningServer) -> None:
    async with stdio_streams() as (from_client, to_client):
        try:
            await _connect(server, from_client, to_client)
        except Exception as problem:
            while isinstance(problem, ExceptionGroup):
                problem = problem.exceptions[0]
            _say(f"{server.url} cannot be reached: {type(problem).__name__}: {problem}")
            # A thread waits for standard input and cannot be called back.
            os._exit(1)


async def _connect(server: RunningServer, from_client: Any, to_client: Any) -> None:
    """Carry messages both ways until one side ends."""
    headers = {"Authorization": f"token {server.token}"} if server.token else {}
    address = f"{server.url}/mcp"
    _say(f"the tools of {address}")
    async with (
        http_streams(address, headers) as (from_server, to_server),
        anyio.create_task_group() as group,
    ):

        async def carry(source: Any, target: Any) -> None:
            async for message in source:
                bare = without_metadata(message)
                if bare is None:
                    _say(f"a message is not understood: {message}")
                else:
                    await target.send(bare)
            group.cancel_scope.cancel()

        group.start_soon(carry, from_client, to_server)
        group.start_soon(carry, from_server, to_client)


def _say(what: str) -> None:
    print(f"oh-jupyter mcp: {what}", file=sys.stderr, flush=True)
