"""What a cell prints leaves the kernel in pieces that nobody has to hold as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["small_messages"]

PIECE = 1024**2
"""Characters of a stream that make one message, at most about."""


@contextmanager
def small_messages() -> Iterator[None]:
    """Have text sent as soon as there is a piece of it, and wait until it is sent.

    By itself ipykernel collects what comes within a fifth of a second, which can be hundreds
    of megabytes, several copies of which are made on the way to each frontend.

    Yields:
        Nothing; the cell is run meanwhile.
    """
    streams = [stream for stream in (sys.stdout, sys.stderr) if hasattr(stream, "pub_thread")]
    before = [stream.write for stream in streams]
    for stream in streams:
        stream.write = _in_pieces(stream)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for stream, write in zip(streams, before, strict=True):
            stream.write = write  # type: ignore[method-assign]


def _in_pieces(stream: Any) -> Any:
    write = stream.write
    collected = 0

    def write_in_pieces(text: str) -> Any:
        nonlocal collected
        collected += len(text) if isinstance(text, str) else 0
        if collected < PIECE:
            return write(text)
        collected = 0
        for start in range(0, len(text), PIECE):
            write(text[start : start + PIECE])
            stream.flush()
        return len(text)

    return write_in_pieces
