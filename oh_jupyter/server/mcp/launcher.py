"""``oh-jupyter mcp``: a server's tools for clients that start a program and talk to its pipes.

It passes messages on as they are, between standard input and output on one side and
streamable HTTP on the other. Standard output belongs to the protocol: everything else
that there is to say goes to standard error. The MCP SDK takes longer to import than an
agent's first message should wait, so none of it is used here.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from oh_jupyter.errors import OhJupyterError, ServerError
from oh_jupyter.messages import GUEST_HEADER, GUEST_VARIABLE
from oh_jupyter.server.running import RunningServer, is_local, problem_of_answer

CONNECT_SECONDS = 30.0
"""Seconds until a server must have been reached."""

ENDING_SECONDS = 2.0
"""Seconds that what is under way gets when the client has closed our standard input."""

STEADY_SECONDS = 1.0
"""Seconds that a stream of notifications must have lasted to be opened again."""

STANDARD_INPUT = 0
READ_BYTES = 65536

SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
VERSION_OF_REQUEST = "io.modelcontextprotocol/protocolVersion"
"""Names the version in the ``_meta`` of a request that belongs to no session."""

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""Parameter by which a request without a session is routed."""

SERVER_LOST = -32000
"""JSON-RPC code of an error of ours."""


def run(find: Callable[[], RunningServer]) -> int:
    """Relay until the client closes our standard input; the exit status.

    The server is found again when it is lost: it may be back at another address.
    """
    try:
        server = find()
    except OhJupyterError as problem:
        return _refuse(str(problem))
    return asyncio.run(_Relay(find, server).run())


@dataclass
class _Session:
    """A session of streamable HTTP, as the server names it."""

    headers: dict[str, str] = field(default_factory=dict)


class _LostError(ServerError):
    """The server is gone, or has forgotten our session: nothing was done."""


class _Relay:
    """Messages of one client, carried to a server and back."""

    def __init__(self, find: Callable[[], RunningServer], server: RunningServer) -> None:
        self._find = find
        self._server = server
        self._session = _Session()
        self._opening: list[Any] = []  # the messages that open a session
        self._reopening = asyncio.Lock()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._failed = False

    async def run(self) -> int:
        """Carry messages until standard input ends; the exit status."""
        _say(f"the tools of {self._server.url}")
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
            begun: list[bytes] = []
            # Not through sys.stdin, whose lock a thread that waits would keep at the exit.
            with suppress(OSError):  # it was closed when we were started
                while chunk := os.read(STANDARD_INPUT, READ_BYTES):
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        put(b"".join([*begun, end]))
                        begun.clear()
                    begun.append(rest)
            put(b"".join(begun))
            put(None)

        threading.Thread(target=read, name="standard input", daemon=True).start()
        for name in ("SIGINT", "SIGTERM"):
            with suppress(NotImplementedError):  # Windows has no such thing in its loop
                loop.add_signal_handler(getattr(signal, name), put, None)

    async def _take(self, line: bytes) -> None:
        """Carry a message; requests go on while others are taken."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            _say(f"a message is no JSON object: {line[:200]!r}")
            _write(_error(None, -32700, "Parse error: one JSON object a line is expected"))
            return
        method, key = message.get("method"), json.dumps(message.get("id"))
        if method == "initialize":
            self._opening, self._session = [message], _Session()
            await self._answer(message)
        elif method is not None and "id" in message:
            task = asyncio.create_task(self._answer(message))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        elif not self._withdraw(message):
            await self._tell(message)

    def _forget(self, key: str, task: asyncio.Task[None]) -> None:
        if self._under_way.get(key) is task:
            del self._under_way[key]

    def _withdraw(self, message: dict[str, Any]) -> bool:
        """End a request that belongs to no session, which is how the server hears of it."""
        if message.get("method") != "notifications/cancelled" or self._session.headers:
            return False
        key = json.dumps((message.get("params") or {}).get("requestId"))
        if key in self._under_way:
            self._under_way[key].cancel()
        return True

    async def _tell(self, message: dict[str, Any]) -> None:
        """Send what has no answer: a notification, or an answer of the client's."""
        try:
            await self._send(message)
        except OhJupyterError as problem:
            _say(str(problem))
        if message.get("method") == "notifications/initialized":
            self._opening[1:] = [message]
            self._listen()

    async def _answer(self, message: dict[str, Any]) -> None:
        """Send a request and write its answer, which says so if there can be none."""
        opens = message["method"] == "initialize"
        try:
            try:
                await self._send(message)
            except _LostError:
                if opens:
                    raise
                await self._reopen(self._session)
                await self._send(message)
        except OhJupyterError as problem:
            _say(str(problem))
            _write(_error(message["id"], SERVER_LOST, str(problem)))
            self._failed = opens

    async def _reopen(self, lost: _Session) -> None:
        """Find the server again, and open a session with it as the client opened the first."""
        async with self._reopening:
            if self._session is not lost:
                return
            self._server = await asyncio.to_thread(self._find)
            self._session = _Session()
            _say(f"again the tools of {self._server.url}")
            for message in self._opening:
                await self._send(message, quiet=True)
            if len(self._opening) > 1:
                self._listen()

    async def _send(self, message: dict[str, Any], quiet: bool = False) -> None:
        """Post a message, and write what comes back; ``quiet`` keeps that from the client."""
        server, session = self._server, self._session
        address = f"{server.url}/mcp"
        headers = {**self._headers(), **_headers_of_request(message)}
        wants_answer = "method" in message and "id" in message
        try:
            async with self._http.stream(
                "POST", address, content=json.dumps(message), headers=headers
            ) as answer:
                if not answer.is_success:
                    await self._refused(answer, address, message)
                    return
                if message.get("method") == "initialize" and SESSION in answer.headers:
                    session.headers[SESSION] = answer.headers[SESSION]
                answered = False
                async for line in _messages(answer):
                    found = json.loads(line)
                    answered |= "method" not in found and found.get("id") == message.get("id")
                    if message.get("method") == "initialize" and "result" in found:
                        session.headers[VERSION] = str(found["result"].get("protocolVersion", ""))
                    if not quiet:
                        _write(line)
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            raise _LostError(f"{address} cannot be reached: {problem}") from problem
        except (httpx.HTTPError, ValueError) as problem:
            raise ServerError(
                f"{address} was lost before it answered, so whether this was done is unknown: "
                f"{type(problem).__name__} {problem}"
            ) from problem
        if wants_answer and not answered:
            raise ServerError(
                f"{address} ended its answer too early: whether this was done is unknown"
            )

    async def _refused(self, answer: httpx.Response, address: str, message: dict[str, Any]) -> None:
        """Write the error of an answer that is MCP's own; or raise what its status means."""
        body = await answer.aread()
        with suppress(ValueError):
            found = json.loads(body)
            if answer.status_code == 404 and SESSION in self._session.headers:
                raise _LostError(problem_of_answer(address, 404, body))
            if isinstance(found, dict) and isinstance(found.get("error"), dict):
                if "id" in message:
                    _write(json.dumps({**found, "id": message["id"]}))
                return
        raise ServerError(problem_of_answer(address, answer.status_code, body))

    def _headers(self) -> dict[str, str]:
        guest = os.environ.get(GUEST_VARIABLE)
        return {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **self._server.headers,
            **self._session.headers,
            **({GUEST_HEADER: guest} if guest else {}),
        }

    def _listen(self) -> None:
        """Have what the server says of itself written, from now on and for this session."""
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        steady = True
        while steady:
            began = loop.time()
            with suppress(httpx.HTTPError):
                address = f"{self._server.url}/mcp"
                async with self._http.stream("GET", address, headers=self._headers()) as answer:
                    if not answer.is_success:
                        return
                    async for line in _messages(answer):
                        _write(line)
            steady = loop.time() - began > STEADY_SECONDS

    async def _end(self) -> None:
        """Let what is under way end, if that is soon, and close the session."""
        if self._under_way and not self._failed:
            await asyncio.wait(list(self._under_way.values()), timeout=ENDING_SECONDS)
        if self._listening is not None:
            self._listening.cancel()
        for task in list(self._under_way.values()):
            task.cancel()
        if SESSION in self._session.headers:
            with suppress(httpx.HTTPError):
                address = f"{self._server.url}/mcp"
                await self._http.delete(address, headers=self._headers(), timeout=ENDING_SECONDS)


async def _messages(answer: httpx.Response) -> AsyncIterator[str]:
    """The messages of an answer, each as one line: a body of JSON, or an event stream."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        body = (await answer.aread()).decode()
        if body.strip():
            yield body.replace("\n", " ")
        return
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            if text := " ".join(data).strip():
                yield text
            data = []


def _headers_of_request(message: dict[str, Any]) -> dict[str, str]:
    """Headers that a request without a session is routed by, none for others."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION_OF_REQUEST) if isinstance(meta, dict) else None
    if not isinstance(version, str) or not isinstance(params, dict):
        return {}
    headers = {VERSION: version, "mcp-method": _header(str(message["method"]))}
    named = params.get(NAMED_BY.get(str(message["method"]), ""))
    return {**headers, "mcp-name": _header(named)} if isinstance(named, str) else headers


def _header(value: str) -> str:
    """A value as a header may have it, by MCP's own encoding of what is not plain."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _error(request_id: Any, code: int, message: str) -> str:
    error = {"code": code, "message": f"oh-jupyter: {message}"}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})


def _refuse(problem: str) -> int:
    """Say why there are no tools, to people and as the answer to the client's first request."""
    _say(problem)
    with suppress(ValueError, AttributeError):  # there is no input, or it is no request
        if not sys.stdin.isatty():
            _write(_error(json.loads(sys.stdin.readline()).get("id"), SERVER_LOST, problem))
    return 1


def _write(line: str) -> None:
    try:
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError:  # the client has gone; the end of standard input follows
        _say("the client does not listen any more")


def _say(what: str) -> None:
    with suppress(OSError):
        print(f"oh-jupyter mcp: {what}", file=sys.stderr, flush=True)
