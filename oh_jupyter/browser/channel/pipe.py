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
from typing import Any

__all__ = ["read_frame", "write_frame"]

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
    """Wait for one message; None at the end of the pipe.

    Half of a surrogate pair, which pages may hold, can be neither shown nor saved as UTF-8.
    """
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
