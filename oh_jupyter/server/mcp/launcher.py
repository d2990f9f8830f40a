"""``oh-jupyter mcp``: a server's tools for clients that start a program and use its pipes.

It relays messages unchanged between standard input and output and streamable HTTP. Standard output
belongs to the protocol; messages to people go to standard error. The MCP SDK takes too long to
import before an agent's first message, so it is not used here.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from oh_jupyter.background import start_thread
from oh_jupyter.errors import OhJupyterError, ServerError
from oh_jupyter.loopback import is_local
from oh_jupyter.server.running import RunningServer, describe_failure

CONNECT_SECONDS = 30.0  # timeout of a connection to the server
ENDING_SECONDS = 2.0  # time that pending requests get when the client has closed our standard input
STEADY_SECONDS = 1.0  # time that a stream of notifications must last to be reopened
STANDARD_INPUT = 0
READ_BYTES = 65536

SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
VERSION_OF_REQUEST = "io.modelcontextprotocol/protocolVersion"  # in a sessionless request
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""Parameter that routes a sessionless request."""

SERVER_LOST = -32000  # JSON-RPC code of our own errors


def run(find: Callable[[], RunningServer]) -> int:
    """Relay until the client closes our standard input; return the exit status.

    A lost server is looked up again: it may have a new address.
    """
    try:
        server = find()
    except OhJupyterError as error:
        return _reject(str(error))
    return asyncio.run(_Relay(find, server).run())


@dataclass
class _Session:
    """Headers that identify a session of streamable HTTP."""

    headers: dict[str, str] = field(default_factory=dict)


class _LostError(ServerError):
    """The server is gone, or has lost our session; nothing was executed."""


class _Relay:
    """Relay of one client's messages to a server and back."""

    def __init__(self, find: Callable[[], RunningServer], server: RunningServer) -> None:
        self._find = find
        self._server = server
        self._session = _Session()
        self._id = uuid.uuid4().hex
        self._opening: list[Any] = []  # the messages that open a session
        self._reopening = asyncio.Lock()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._failed = False

    async def run(self) -> int:
        """Relay messages until standard input ends; return the exit status."""
        _log(f"the tools of {self._server.url}")
        self._read_input()
        timeout = httpx.Timeout(CONNECT_SECONDS, read=None)  # a cell may take hours
        async with httpx.AsyncClient(
            timeout=timeout,
            limits=httpx.Limits(max_connections=None),
            trust_env=not is_local(self._server.url),
        ) as self._http:
            while not self._failed and (line := await self._lines.get()) is not None:
                if line.strip():
                    await self._take(line)
            await self._end()
        return 1 if self._failed else 0

    def _read_input(self) -> None:
        loop = asyncio.get_running_loop()

        def put(line: bytes | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._lines.put_nowait, line)

        def read() -> None:
            line: list[bytes] = []
            # Not through sys.stdin, whose lock a waiting thread would hold at exit.
            with suppress(OSError):  # closed before we were started
                while chunk := os.read(STANDARD_INPUT, READ_BYTES):
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        put(b"".join([*line, end]))
                        line.clear()
                    line.append(rest)
            put(b"".join(line))
            put(None)

        start_thread(read, "oh-mcp-stdin")
        for name in ("SIGINT", "SIGTERM"):
            with suppress(NotImplementedError):  # on Windows
                loop.add_signal_handler(getattr(signal, name), put, None)

    async def _take(self, line: bytes) -> None:
        """Relay a message; requests run concurrently."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            _log(f"a message is not a JSON object: {line[:200]!r}")
            _write(_error(None, -32700, "Parse error: expected one JSON object per line"))
            return
        method, key = message.get("method"), json.dumps(message.get("id"))
        if method == "initialize":
            self._opening, self._session = [message], _Session()
            await self._request(message)
        elif method is not None and "id" in message:
            task = asyncio.create_task(self._request(message))
            self._pending[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        elif not self._cancel(message):
            await self._notify(message)

    def _forget(self, key: str, task: asyncio.Task[None]) -> None:
        if self._pending.get(key) is task:
            del self._pending[key]

    def _cancel(self, message: dict[str, Any]) -> bool:
        """Cancel a sessionless request by disconnecting; return False for other messages."""
        if message.get("method") != "notifications/cancelled" or self._session.headers:
            return False
        key = json.dumps((message.get("params") or {}).get("requestId"))
        if key in self._pending:
            self._pending[key].cancel()
        return True

    async def _notify(self, message: dict[str, Any]) -> None:
        """Send a message without a response: a notification, or a response of the client."""
        try:
            await self._send(message)
        except OhJupyterError as error:
            _log(str(error))
        if message.get("method") == "notifications/initialized":
            self._opening[1:] = [message]
            self._listen()

    async def _request(self, message: dict[str, Any]) -> None:
        """Send a request and write its response, or an error."""
        opens = message["method"] == "initialize"
        try:
            try:
                await self._send(message)
            except _LostError:
                if opens:
                    raise
                await self._reopen(self._session)
                await self._send(message)
        except OhJupyterError as error:
            _log(str(error))
            _write(_error(message["id"], SERVER_LOST, str(error)))
            self._failed = opens

    async def _reopen(self, lost: _Session) -> None:
        """Find the server again, and repeat the messages that opened the session."""
        async with self._reopening:
            if self._session is not lost:
                return
            self._server = await asyncio.to_thread(self._find)
            self._session = _Session()
            _log(f"again the tools of {self._server.url}")
            for message in self._opening:
                await self._send(message, quiet=True)
            if len(self._opening) > 1:
                self._listen()

    async def _send(self, message: dict[str, Any], quiet: bool = False) -> None:
        """Post a message, and write the response unless ``quiet``."""
        server, session = self._server, self._session
        address = f"{server.url}/mcp"
        headers = {**self._headers(), **_headers_of_request(message)}
        is_request = "method" in message and "id" in message
        try:
            async with self._http.stream(
                "POST", address, content=json.dumps(message), headers=headers
            ) as response:
                if not response.is_success:
                    await self._rejected(response, address, message)
                    return
                if message.get("method") == "initialize" and SESSION in response.headers:
                    session.headers[SESSION] = response.headers[SESSION]
                answered = False
                async for line in _messages(response):
                    sent = json.loads(line)
                    answered |= "method" not in sent and sent.get("id") == message.get("id")
                    if message.get("method") == "initialize" and "result" in sent:
                        session.headers[VERSION] = str(sent["result"].get("protocolVersion", ""))
                    if not quiet:
                        _write(line)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _LostError(f"{address} cannot be reached: {error}") from error
        except (httpx.HTTPError, ValueError) as error:
            raise ServerError(
                f"The connection to {address} was lost before the response; the request may have "
                f"been executed: {type(error).__name__} {error}"
            ) from error
        if is_request and not answered:
            raise ServerError(
                f"{address} sent an incomplete response; the request may have been executed"
            )

    async def _rejected(
        self, response: httpx.Response, address: str, message: dict[str, Any]
    ) -> None:
        """Write an error of MCP's own, or raise one for the HTTP status."""
        body = await response.aread()
        with suppress(ValueError):
            content = json.loads(body)
            if response.status_code == 404 and SESSION in self._session.headers:
                raise _LostError(describe_failure(address, 404, body))
            if isinstance(content, dict) and isinstance(content.get("error"), dict):
                if "id" in message:
                    _write(json.dumps({**content, "id": message["id"]}))
                return
        raise ServerError(describe_failure(address, response.status_code, body))

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "X-Session": self._id,  # a relay has one client, also where that has no session
            **self._server.headers,
            **self._session.headers,
        }

    def _listen(self) -> None:
        """Relay the server's own messages in this session."""
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._relay_stream())

    async def _relay_stream(self) -> None:
        loop = asyncio.get_running_loop()
        steady = True
        while steady:
            started = loop.time()
            with suppress(httpx.HTTPError):
                address = f"{self._server.url}/mcp"
                async with self._http.stream("GET", address, headers=self._headers()) as response:
                    if not response.is_success:
                        return
                    async for line in _messages(response):
                        _write(line)
            steady = loop.time() - started > STEADY_SECONDS

    async def _end(self) -> None:
        """Give pending requests a moment, and close the session."""
        if self._pending and not self._failed:
            await asyncio.wait(list(self._pending.values()), timeout=ENDING_SECONDS)
        if self._listening is not None:
            self._listening.cancel()
        for task in list(self._pending.values()):
            task.cancel()
        if SESSION in self._session.headers:
            with suppress(httpx.HTTPError):
                address = f"{self._server.url}/mcp"
                await self._http.delete(address, headers=self._headers(), timeout=ENDING_SECONDS)


async def _messages(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the messages of a response, JSON or an event stream, as one line each."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        body = (await response.aread()).decode()
        if body.strip():
            yield body.replace("\n", " ")
        return
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            if text := " ".join(data).strip():
                yield text
            data = []


def _headers_of_request(message: dict[str, Any]) -> dict[str, str]:
    """Return the routing headers of a sessionless request, none for others."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION_OF_REQUEST) if isinstance(meta, dict) else None
    if not isinstance(version, str) or not isinstance(params, dict):
        return {}
    headers = {VERSION: version, "mcp-method": _header(str(message["method"]))}
    name = params.get(NAMED_BY.get(str(message["method"]), ""))
    return {**headers, "mcp-name": _header(name)} if isinstance(name, str) else headers


def _header(value: str) -> str:
    """Return a header value, in MCP's own encoding if it is not plain ASCII."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _error(request_id: Any, code: int, message: str) -> str:
    error = {"code": code, "message": f"oh-jupyter: {message}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})


def _reject(reason: str) -> int:
    """Report why there are no tools, to people and as the response to the first request."""
    _log(reason)
    with suppress(ValueError, AttributeError):  # no input, or not a request
        if not sys.stdin.isatty():
            _write(_error(json.loads(sys.stdin.readline()).get("id"), SERVER_LOST, reason))
    return 1


def _write(line: str) -> None:
    try:
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError:  # the client has gone; the end of standard input follows
        _log("the client no longer reads our output")


def _log(message: str) -> None:
    with suppress(OSError):
        print(f"oh-jupyter mcp: {message}", file=sys.stderr, flush=True)
