"""ACP messages over the pipes of a child, whatever it writes.

The library's own reader logs invalid input and has no limits; this one passes well-formed messages
only, and a child that writes too fast has to wait.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import IO, Any

import acp
from acp.schema import SessionNotification
from pydantic import ValidationError

from oh_jupyter.agents.children import THREAD_NAME
from oh_jupyter.ansi import strip_ansi
from oh_jupyter.background import start_thread
from oh_jupyter.process import Child

MAX_MESSAGE_BYTES = 32 * 1024**2
MAX_STRAY_LINES = 1000
"""Maximum number of lines that are not messages, such as prints of a library."""

MAX_WAITING_CHUNKS = 16
CHUNK_BYTES = 65536
STDERR_BYTES = 4096
STDERR_TIMEOUT_SECONDS = 5.0
"""Maximum wait for standard error, which the child's children may hold open."""


def connect(client: Any, transport: ChildTransport) -> acp.ClientSideConnection:
    """Return the connection to an agent; release 0.11 of the library needs streams."""
    # Elicitation is stable in the schema, but not in the library.
    connect: Any = partial(acp.connect_to_agent, use_unstable_protocol=True)
    output = inspect.signature(connect).parameters["output_stream"]
    if output.default is not inspect.Parameter.empty:
        connection: acp.ClientSideConnection = connect(client, transport)
    else:
        connection = connect(client, _MessageWriter(transport), _MessageReader(transport))
    return connection


class _MessageReader(asyncio.StreamReader):
    """Messages of a transport as lines of a stream."""

    def __init__(self, transport: ChildTransport) -> None:
        self._messages = transport

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        message = await self._messages.receive()
        if message is None:
            raise asyncio.IncompleteReadError(b"", None)
        return json.dumps(message).encode() + b"\n"


class _MessageWriter(asyncio.StreamWriter):
    """A stream whose lines a transport sends."""

    def __init__(self, transport: ChildTransport) -> None:
        self._messages = transport

    def write(self, data: Any) -> None:
        self._messages.send_line(bytes(data))

    async def drain(self) -> None:
        """Return at once: the transport's own thread writes."""

    def __del__(self, *warnings: Any) -> None:
        """Do nothing, because there is no socket."""


class ChildTransport:
    """Message transport of an ``acp`` connection; ``problem`` says why it failed.

    ``on_stderr`` is called on the loop with the child's standard error.
    """

    def __init__(self, child: Child) -> None:
        self.problem = ""
        self.ended = asyncio.Event()
        self.on_stderr: Callable[[str], None] = lambda line: None
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING_CHUNKS)
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._buffer = bytearray()
        self._scanned = 0
        self._stray_lines = 0
        self._stderr = b""
        self._closed = False
        start_thread(self._read, THREAD_NAME, child.stdout)
        start_thread(self._write, THREAD_NAME, child.stdin)
        self._listener = start_thread(self._listen, THREAD_NAME, child.stderr)

    @property
    def stderr_tail(self) -> str:
        """End of the child's standard error."""
        return strip_ansi(self._stderr.decode(errors="replace")).strip()

    def wait_for_stderr(self) -> None:
        """Wait until the ended child's standard error is read."""
        self._listener.join(STDERR_TIMEOUT_SECONDS)

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message without waiting for the child to read it."""
        self.send_line(json.dumps(message).encode() + b"\n")

    def send_line(self, line: bytes) -> None:
        """Write an encoded message."""
        self._outgoing.put(line)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end, or after too many other lines."""
        while (line := await self._line()) is not None:
            await asyncio.sleep(0)  # let others use the loop during a flood
            message = _parsed(line)
            if message is not None and _is_understood(message):
                return message
            self._stray_lines += message is None and bool(line.strip())
            if self._stray_lines > MAX_STRAY_LINES:
                self.problem = f"it wrote more than {MAX_STRAY_LINES} lines that are not messages"
                break
        self.ended.set()
        return None

    async def close(self) -> None:
        """Stop reading and writing; discard the child's further output."""
        self._closed = True
        self._outgoing.put(None)
        while not self._chunks.empty():
            self._chunks.get_nowait()
        self.ended.set()

    async def _line(self) -> bytes | None:
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._scanned > MAX_MESSAGE_BYTES:
                limit = MAX_MESSAGE_BYTES // 1024**2
                self.problem = f"it sent a message of more than {limit} MiB"
                return None
            chunk = await self._chunks.get()
            if not chunk:
                return None
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        return line

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, suppress(OSError, ValueError, RuntimeError, CancelledError):
            while chunk := pipe.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
                if not self._closed:
                    self._put(chunk)
        with suppress(RuntimeError, CancelledError):
            self._put(b"")

    def _put(self, chunk: bytes) -> None:
        """Pass a chunk to the loop, and wait until there is room for it."""
        putting = self._chunks.put(chunk)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except BaseException:
            putting.close()
            raise

    def _write(self, pipe: IO[bytes]) -> None:
        with suppress(OSError, ValueError), pipe:
            while (data := self._outgoing.get()) is not None:
                pipe.write(data)
                pipe.flush()

    def _listen(self, pipe: IO[bytes]) -> None:
        with pipe, suppress(OSError, ValueError):
            while chunk := pipe.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
                self._stderr = (self._stderr + chunk)[-STDERR_BYTES:]
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self.on_stderr, chunk.decode(errors="replace"))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line, or None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _is_understood(message: dict[str, Any]) -> bool:
    """Return whether a message is supported; later protocols have other notifications."""
    if not isinstance(message.get("id"), str | int | None):
        return False
    if "method" not in message:
        return "id" in message and isinstance(message.get("error", {}), dict)
    if "id" in message:
        return isinstance(message["method"], str)
    try:
        SessionNotification.model_validate(message.get("params"))
    except ValidationError:
        return False
    return bool(message["method"] == "session/update")
