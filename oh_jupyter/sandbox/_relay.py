"""Relay in a box: a port of the box's own loopback that leads to the proxy's Unix socket.

``python -I -S _relay.py SOCKET PROGRAM ARGUMENTS`` starts the relay as a child of the box's init
process, then becomes the program, with the variables by which programs find the proxy. It is all
that runs as Python in a box, so it imports the standard library only.
"""

from __future__ import annotations

import _socket  # ``socket`` and asyncio would triple the start of each shell
import os
import select
import sys

PORT = 3128
"""Port in the box, whose network has nothing else."""
MAX_WAITING_CONNECTIONS = 128
READ_BYTES = 65536

VARIABLES = {
    **dict.fromkeys(
        ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}"
    ),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
"""Variables by which programs find the proxy; their own servers in the box need none."""


def serve(listener: _socket.socket, path: str) -> None:
    """Connect each client with the proxy, until the box ends."""
    select.select([listener], [], [])  # most boxes never have a client
    import asyncio
    import contextlib
    import socket

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        outer: asyncio.StreamWriter | None = None
        try:
            replies, outer = await asyncio.open_unix_connection(path)
            async with asyncio.TaskGroup() as both:
                both.create_task(copy(reader, outer))
                both.create_task(copy(replies, writer))
        except (OSError, ExceptionGroup):
            pass  # one side has vanished
        finally:
            for each in (writer, outer):
                if each is not None:
                    with contextlib.suppress(OSError):
                        each.close()

    async def run() -> None:
        sock = socket.socket(fileno=listener.detach())
        server = await asyncio.start_server(connect, sock=sock, backlog=MAX_WAITING_CONNECTIONS)
        await server.serve_forever()

    asyncio.run(run())


def start(path: str) -> None:
    """Start the relay in a process without terminal, whose parent is the box's init process."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(MAX_WAITING_CONNECTIONS)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        listener.close()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")
    try:
        serve(listener, path)
    finally:
        os._exit(0)


if __name__ == "__main__":
    start(sys.argv[1])
    os.execvpe(sys.argv[2], sys.argv[2:], {**os.environ, **VARIABLES})
