"""Proxy outside of a box: its only way to a network, which reaches only allowed hosts.

It listens on a Unix socket in a folder of the box, and speaks CONNECT and plain HTTP with one
request for each connection. A name is resolved once, all its addresses are checked, and one of
exactly these is dialled. It logs nothing of what passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, cast

from oh_jupyter.background import thread_pool
from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Address, Endpoint
from oh_jupyter.sandbox.http_request import Request, parse_request

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
MAX_HEAD_BYTES = 32 * 1024
MAX_CHUNK_LINE_BYTES = 256
MAX_RESOLVER_THREADS = 4
READ_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
"""Time in which a client must have sent the head of its request."""
RESOLVE_SECONDS = 15.0
CONNECT_SECONDS = 20.0
CLOSE_SECONDS = 10.0
"""Time in which the other side must have read the rest."""
IDLE_SECONDS = 600.0
"""Time without a byte in either direction after which a connection ends."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a name; raises OSError."""


class Access(Protocol):
    """Decisions about hosts."""

    async def check(self, endpoint: Endpoint) -> None:
        """Raise HostError unless the host may be reached; may wait for a person."""

    def may_dial(self, address: Address, port: int) -> bool:
        """Return whether the address of an allowed host may be dialled."""

    def note_failure(self, endpoint: Endpoint, error: HostError) -> None:
        """Record that an allowed host was not reached."""


class Proxy:
    """The proxy of one box, on the loop that calls it."""

    def __init__(self, access: Access, resolve: Resolve | None = None) -> None:
        """Make a proxy; ``resolve`` replaces the machine's resolver."""
        self._access = access
        self._resolve = resolve or self._look_up
        self._names = thread_pool(MAX_RESOLVER_THREADS, "oh-proxy-names")
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_closed = False

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def listen(self, path: str, owner: str | None = None) -> None:
        """Listen on a Unix socket that only its owner can use; None is our own user."""
        self._server = await asyncio.start_unix_server(
            self._accept, path, limit=MAX_HEAD_BYTES, backlog=MAX_CONNECTIONS
        )
        os.chmod(path, 0o600)
        if owner is not None:
            import pwd

            os.chown(path, pwd.getpwnam(owner).pw_uid, -1)

    async def close(self) -> None:
        """End all connections, also those that arrive meanwhile."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._names.shutdown(wait=False, cancel_futures=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        if self._is_closed:
            writer.transport.abort()
            return
        is_full = len(self._connections) >= MAX_CONNECTIONS
        if not is_full:
            self._connections.add(task)
        try:
            if is_full:
                raise HostError(
                    f"The sandbox has {MAX_CONNECTIONS} connections open: close some first.", 503
                )
            await self._serve(reader, writer)
        except HostError as error:
            await _reply(writer, error)
        except (OSError, EOFError, ValueError, TimeoutError, ExceptionGroup) as error:
            # One side has vanished, stays silent, or breaks the protocol in its body.
            logger.debug("A connection of the sandbox's proxy ended: %s", type(error).__name__)
        except asyncio.CancelledError:  # by `close`; Python 3.11 would log it as an error
            writer.transport.abort()
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await _close(writer)
            self._connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _read_request(reader)
        await self._access.check(request.endpoint)
        try:
            replies, server = await self._dial(request.endpoint)
        except HostError as error:
            self._access.note_failure(request.endpoint, error)
            raise
        try:
            if request.is_tunnel:
                writer.write(ESTABLISHED)
                await _tunnel(reader, writer, replies, server)
            else:
                server.write(request.head)
                await _exchange(request, reader, writer, replies, server)
        finally:
            await _close(server)

    async def _dial(self, endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to one of the checked addresses."""
        addresses = await self._checked_addresses(endpoint)
        failure = "no address"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for address in addresses:
                    try:
                        return await asyncio.open_connection(
                            str(address), endpoint.port, limit=READ_BYTES
                        )
                    except OSError as error:
                        failure = os.strerror(error.errno or errno.EIO)
        except TimeoutError:
            raise HostError(
                f"{endpoint} does not answer within {CONNECT_SECONDS:g} s. Try again later.", 504
            ) from None
        raise HostError(
            f"{endpoint} cannot be reached: {failure}. Check the port, or try again later.", 502
        )

    async def _checked_addresses(self, endpoint: Endpoint) -> list[Address]:
        """Return the addresses of a host if every one of them may be dialled."""
        literal = endpoint.address
        addresses = [literal] if literal else await self._addresses(endpoint)
        for address in addresses:
            if not self._access.may_dial(address, endpoint.port):
                raise HostError(
                    f"{endpoint} is the address {address}, which is not on the public internet. "
                    "If it is needed, ask the user to add that address to sandbox_hosts."
                )
        return addresses

    async def _addresses(self, endpoint: Endpoint) -> list[Address]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                texts = await self._resolve(endpoint.host, endpoint.port)
            return [ipaddress.ip_address(text) for text in dict.fromkeys(texts)]
        except TimeoutError:
            raise HostError(
                f"The name {endpoint.host} was not resolved within {RESOLVE_SECONDS:g} s. "
                "Try again later.",
                504,
            ) from None
        except (OSError, ValueError):
            raise HostError(
                f"The name {endpoint.host} cannot be resolved. Check its spelling.", 502
            ) from None

    async def _look_up(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        found_addresses = await loop.run_in_executor(
            self._names, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return [str(address[0]) for *_, address in found_addresses]


async def _read_request(reader: asyncio.StreamReader) -> Request:
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            return parse_request(await reader.readuntil(b"\r\n\r\n"))
    except asyncio.LimitOverrunError:
        raise HostError(
            f"The head of the request is longer than {MAX_HEAD_BYTES // 1024} KiB: shorten its "
            "headers.",
            431,
        ) from None
    except TimeoutError:
        raise HostError(f"The request did not arrive within {HEAD_SECONDS:g} s.", 408) from None


async def _reply(writer: asyncio.StreamWriter, error: HostError) -> None:
    """Send an error, as the reason as well, because many programs show nothing else."""
    reason = re.sub(r"[^ -~]", "?", str(error))
    body = f"{reason}\n".encode()
    head = (
        f"HTTP/1.1 {error.status} {reason}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(HEAD_SECONDS):
            writer.write(head.encode() + body)
            await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what the other side does not read in time is dropped."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            writer.close()
            await writer.wait_closed()
    except (TimeoutError, asyncio.CancelledError) as error:
        writer.transport.abort()
        if isinstance(error, asyncio.CancelledError):
            raise
    except OSError:  # it has ended already
        pass


async def _tunnel(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    replies: asyncio.StreamReader,
    server: asyncio.StreamWriter,
) -> None:
    """Copy in both directions until both have ended."""
    async with asyncio.timeout(IDLE_SECONDS) as idle, asyncio.TaskGroup() as both:
        both.create_task(_copy(reader, server, idle))
        both.create_task(_copy(replies, writer, idle))


async def _exchange(
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    replies: asyncio.StreamReader,
    server: asyncio.StreamWriter,
) -> None:
    """Send the body of one request and return its response; a second request ends both."""
    async with asyncio.timeout(IDLE_SECONDS) as idle:

        async def send() -> None:
            await _copy_body(request, reader, server, idle)
            await reader.read(1)

        await _until_first(send(), _copy(replies, writer, idle))


async def _until_first(*work: Coroutine[Any, Any, None]) -> None:
    """Run all until the first ends, and raise its error."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: asyncio.Timeout
) -> None:
    """Copy to the end of a stream; reading waits while the other side does not keep up."""
    while data := await reader.read(READ_BYTES):
        await _write(writer, data, idle)
    writer.write_eof()


async def _write(writer: asyncio.StreamWriter, data: bytes, idle: asyncio.Timeout) -> None:
    if not idle.expired():
        idle.reschedule(asyncio.get_running_loop().time() + IDLE_SECONDS)
    writer.write(data)
    await writer.drain()


async def _copy_body(
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    idle: asyncio.Timeout,
) -> None:
    """Copy exactly the body of a request."""
    if request.length is not None:
        await _copy_exactly(request.length, reader, writer, idle)
        return
    while True:
        line = await reader.readuntil(b"\r\n")
        size = _CHUNK.fullmatch(line) if len(line) <= MAX_CHUNK_LINE_BYTES else None
        if size is None:
            raise ValueError("malformed chunk")
        length = int(size[1], 16)
        if length == 0:
            break
        await _write(writer, b"%x\r\n" % length, idle)
        await _copy_exactly(length, reader, writer, idle)
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("malformed chunk")
        await _write(writer, b"\r\n", idle)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers are optional, and the server may treat them as headers
    await _write(writer, b"0\r\n\r\n", idle)


async def _copy_exactly(
    length: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: asyncio.Timeout
) -> None:
    while length:
        data = await reader.read(min(length, READ_BYTES))
        if not data:
            raise EOFError
        length -= len(data)
        await _write(writer, data, idle)
