"""The pipe between BrowserEnv and its worker: length-prefixed JSON frames, settings and names.

``multiprocessing.Connection`` has frames as well, but it uses pickle, and it would have to set a
start method, which is the host program's choice.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from oh_jupyter.background import start_thread
from oh_jupyter.browser.channel.addresses import OriginFilter
from oh_jupyter.errors import BrowserError

PARTS = (
    "screenshot",
    "set_of_marks",
    "dom_object",
    "axtree_object",
    "extra_element_properties",
    "focused_element_bid",
    "text_content",
)
"""Optional parts of an observation, which take time to compute."""
RECORDS = ("console_messages", "network_requests")
"""Parts of an observation that are included only on request."""
MAX_CONTENT_CHARS = 30_000
"""Maximum length of a page's text or tree for an agent. A longer tree is limited to the viewport
and its surroundings; if it is still too long, it is truncated."""
GET_GOAL, GET_REWARDS = "GET_EVAL_GOAL", "GET_EVAL_REWARDS"
"""Actions of OpenHands' evaluation that return the goal and the rewards so far."""


CLOSE_SECONDS, CLOSE_SECONDS_WITH_ARCHIVE = 3.0, 60.0
"""Seconds that a worker may take to exit before it is terminated."""


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """Settings with which a worker starts its browser."""

    executable: str = ""
    headless: bool = True
    viewport: tuple[int, int] = (1280, 720)
    downloads_dir: str = ""
    accept_dialogs: bool = False
    sandbox: bool = True
    storage_state: dict[str, Any] | None = None
    user_data_dir: str = ""
    device: str = ""
    har_path: str = ""
    cdp_url: str = ""
    allowed_origins: tuple[str, ...] = ()
    blocked_origins: tuple[str, ...] = ()
    task: str = ""
    seed: int | None = None

    @property
    def origins(self) -> OriginFilter:
        """Filter of the allowed and blocked origins."""
        return OriginFilter(self.allowed_origins, self.blocked_origins)

    @property
    def close_seconds(self) -> float:
        """Seconds that the worker may take to exit; writing a HAR archive takes longer."""
        return CLOSE_SECONDS_WITH_ARCHIVE if self.har_path else CLOSE_SECONDS


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LENGTH_HEADER = struct.Struct("!I")


def write_frame(descriptor: int, message: dict[str, Any], *, is_finite: bool = False) -> None:
    """Write a message; encoding is eight times faster if all its numbers are finite."""
    body = _encode(message, is_finite)
    view = memoryview(LENGTH_HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(descriptor, view) :]


def _encode(message: dict[str, Any], is_finite: bool) -> bytes:
    if is_finite:
        import orjson

        with contextlib.suppress(TypeError):
            return orjson.dumps(message)
    # Pages can contain lone surrogates, which ASCII escapes can represent and UTF-8 cannot.
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def read_frame(descriptor: int, *, replace_surrogates: bool = False) -> dict[str, Any] | None:
    """Wait for a message; return None at the end of the pipe."""
    header = _read_exactly(descriptor, LENGTH_HEADER.size)
    body = _read_exactly(descriptor, LENGTH_HEADER.unpack(header)[0]) if header else None
    if body is None:
        return None
    message: dict[str, Any] = json.loads(body)
    if replace_surrogates and b"\\ud" in body:
        message = _well_formed(message)
    return message


def _well_formed(value: Any) -> Any:
    """Replace lone surrogates in all strings of a value."""
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
    """Worker's end of the pipe; the first request contains the settings."""

    def __init__(self) -> None:
        # Libraries may print to standard output, which would corrupt the frames.
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._start_id = 0

    def read_settings(self) -> LaunchSettings | None:
        """Wait for the start request; return None if the parent has exited."""
        request = read_frame(0)
        if request is None:
            return None
        self._start_id = request["id"]
        return LaunchSettings(**request["settings"])

    def started(self) -> None:
        """Report that the worker is ready."""
        self.answer(self._start_id, True)

    def refused(self, reason: str, is_final: bool) -> None:
        """Report that the worker cannot start; ``is_final`` if another attempt would also fail."""
        write_frame(self._output, {"id": self._start_id, "error": reason, "is_final": is_final})

    def answer(self, number: int, result: Any, is_finite: bool = False) -> None:
        """Send the result of a request; for ``is_finite`` see ``write_frame``."""
        write_frame(self._output, {"id": number, "result": result}, is_finite=is_finite)

    def fail(self, number: int, error: BaseException) -> None:
        """Send the error of a request."""
        write_frame(self._output, {"id": number, "error": first_line(error)})

    def listen(self, on_request: Callable[[dict[str, Any] | None], Any]) -> None:
        """Start a thread that calls back with each request, and with None at the end."""

        def read() -> None:
            # RuntimeError: the callback's event loop is already closed.
            with contextlib.suppress(OSError, RuntimeError):
                while (request := read_frame(0)) is not None:
                    on_request(request)
            with contextlib.suppress(RuntimeError):
                on_request(None)

        start_thread(read, "oh-browser-requests")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with its type unless it is a BrowserError."""
    line = (str(error).strip().splitlines() or [""])[0]
    return line if isinstance(error, BrowserError) else f"{type(error).__name__}: {line}"


def run_worker(serve: Callable[[WorkerEnd], int]) -> NoReturn:
    """Serve until the input or the browser ends, then exit the process with the status."""
    code = 1
    try:
        code = serve(WorkerEnd())
    finally:
        sys.stderr.flush()
        # The reading thread may block indefinitely, so a normal exit could hang.
        os._exit(code)
