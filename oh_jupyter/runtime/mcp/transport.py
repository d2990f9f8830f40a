"""MCP over the pipes of a child that cannot outlive this process.

The SDK's own stdio client starts its processes itself and leaves them behind when this process is
killed; these are guarded like all children of the runtime. Threads read the pipes, which works on
every system.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from oh_jupyter.background import start_thread
from oh_jupyter.mcp_sdk.json_rpc import decode, encode
from oh_jupyter.process import Child

MAX_MESSAGE_BYTES = 64 * 1024**2

READ_BYTES = 65536


@asynccontextmanager
async def pipes(
    child: Child, in_thread: Callable[..., Awaitable[Any]]
) -> AsyncIterator[tuple[Any, Any, asyncio.Event]]:
    """Exchange messages with a child, one JSON object per line.

    Yields the streams to read and to write, and an event that is set when the child's output ends.
    """
    arrived, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, leaving = anyio.create_memory_object_stream[Any](0)
    reader = _reader(child.stdout)
    ended = asyncio.Event()

    async def receive() -> None:
        async with arrived:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await _line(reader):
                    await arrived.send(decode(line))
        ended.set()

    async def send() -> None:
        async with leaving:
            async for message in leaving:
                try:
                    await in_thread(_write, child.stdin, encode(message))
                except (OSError, ValueError):  # the end of its output is detected, too
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield incoming, outgoing, ended
        finally:
            incoming.close()
            outgoing.close()
            group.cancel_scope.cancel()


async def read_lines(pipe: Any, lines: deque[str]) -> None:
    """Read a child's standard error to its end, and keep its last lines."""
    reader = _reader(pipe)
    while line := await _line(reader):
        lines.append(line.decode(errors="replace").rstrip())


def _reader(pipe: Any) -> asyncio.StreamReader:
    """Return a reader of a pipe, which a thread feeds until the end and then closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)

    def pump() -> None:
        with pipe, suppress(OSError, ValueError, RuntimeError):  # the loop may be closed
            while chunk := pipe.read1(READ_BYTES):
                loop.call_soon_threadsafe(reader.feed_data, chunk)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(reader.feed_eof)

    start_thread(pump, "oh-runtime-mcp")
    return reader


def _write(pipe: Any, data: bytes) -> None:
    pipe.write(data)
    pipe.flush()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, or b"" at the end or for an oversized line."""
    try:
        return await reader.readline()
    except ValueError:
        return b""
