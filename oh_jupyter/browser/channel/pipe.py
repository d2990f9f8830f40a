"""Frames on the pipe between BrowserEnv and its worker: a length, then JSON.

``multiprocessing.Connection`` would do the framing too, but it pickles, and its child
needs a start method, which belongs to the host program.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from oh_jupyter.background import start_thread
from oh_jupyter.browser.channel.protocol import LaunchSettings
from oh_jupyter.errors import BrowserError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LENGTH_HEADER = struct.Struct("!I")


def write_frame(descriptor: int, message: dict[str, Any], *, is_finite: bool = False) -> None:
    """Write one message; one without infinite or undefined numbers takes an eighth of the time."""
    body = _encode(message, is_finite)
    view = memoryview(LENGTH_HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(descriptor, view) :]


def _encode(message: dict[str, Any], is_finite: bool) -> bytes:
    if is_finite:
        import orjson

        with contextlib.suppress(TypeError):
            return orjson.dumps(message)
    # Pages may hold lone surrogates: ASCII escapes carry them, UTF-8 would refuse.
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def read_frame(descriptor: int, *, replace_surrogates: bool = False) -> dict[str, Any] | None:
    """Wait for one message, without halves of surrogate pairs; None at the end of the pipe."""
    head = _read_exactly(descriptor, LENGTH_HEADER.size)
    body = _read_exactly(descriptor, LENGTH_HEADER.unpack(head)[0]) if head else None
    if body is None:
        return None
    message: dict[str, Any] = json.loads(body)
    if replace_surrogates and b"\\ud" in body:
        message = _well_formed(message)
    return message


def _well_formed(value: Any) -> Any:
    """Replace halves of surrogate pairs in all texts of a value."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    return value


def _read_exactly(descriptor: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(descriptor, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


class WorkerEnd:
    """Requests and answers of a worker; the first request starts it."""

    def __init__(self) -> None:
        # Whatever a library prints must not get between the frames.
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._start_id = 0

    def read_settings(self) -> LaunchSettings | None:
        """Wait for the request to start; None if the parent is gone."""
        first = read_frame(0)
        if first is None:
            return None
        self._start_id = first["id"]
        return LaunchSettings(**first["settings"])

    def started(self) -> None:
        """Answer that the worker is ready."""
        self.answer(self._start_id, True)

    def refused(self, reason: str, is_final: bool) -> None:
        """Answer that the worker cannot start; finally, if another attempt would be of no use."""
        write_frame(self._output, {"id": self._start_id, "error": reason, "is_final": is_final})

    def answer(self, number: int, result: Any, is_finite: bool = False) -> None:
        """Answer a request; see ``write_frame`` for what is finite."""
        write_frame(self._output, {"id": number, "result": result}, is_finite=is_finite)

    def fail(self, number: int, error: BaseException) -> None:
        """Answer that a request could not be carried out."""
        write_frame(self._output, {"id": number, "error": first_line(error)})

    def listen(self, on_request: Callable[[dict[str, Any] | None], Any]) -> None:
        """Call back from a thread with each request, and with None when the parent is gone."""

        def read() -> None:
            # RuntimeError: the loop that is called back has ended already.
            with contextlib.suppress(OSError, RuntimeError):
                while (request := read_frame(0)) is not None:
                    on_request(request)
            with contextlib.suppress(RuntimeError):
                on_request(None)

        start_thread(read, "oh-browser-requests")


def first_line(error: BaseException) -> str:
    """Return an error's message in a line, with its type unless the error is ours."""
    first = (str(error).strip().splitlines() or [""])[0]
    return first if isinstance(error, BrowserError) else f"{type(error).__name__}: {first}"


def run_worker(serve: Callable[[WorkerEnd], int]) -> NoReturn:
    """Serve until the input or the browser ends, and end the process with the exit status."""
    code = 1
    try:
        code = serve(WorkerEnd())
    finally:
        sys.stderr.flush()
        # The listening thread may be in a blocking read, which nothing would end.
        os._exit(code)
