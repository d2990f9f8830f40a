"""Outputs of the cells of agents: outside of IPython's history, and sent in chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _DiscardingHistory(dict[int, list[Any]]):
    """A history that gives out a list for each cell, and keeps none."""

    def __missing__(self, key: int) -> list[Any]:
        return []


@contextmanager
def without_output_history(shell: Any) -> Iterator[None]:
    """Keep the outputs of a cell out of what ``%notebook`` exports.

    IPython (since 9.0) holds on to all that is printed, by the number of the cell. The cells of
    agents have no number of their own: their outputs would be found below the person's next
    cell, and never be forgotten, however much there is.
    """
    history = getattr(shell, "history_manager", None)
    kept = getattr(history, "outputs", None)
    if history is None or kept is None:
        yield
        return
    history.outputs = _DiscardingHistory()
    try:
        yield
    finally:
        history.outputs = kept


@contextmanager
def replied_at_once(kernel: Any) -> Iterator[None]:
    """Have no pause before the reply.

    ipykernel sleeps there, for clients that take the reply for the end of a cell's outputs. Ours
    waits for the idle status, which comes after them on the same channel.
    """
    pause_seconds = getattr(kernel, "_execute_sleep", 0)
    kernel._execute_sleep = 0
    try:
        yield
    finally:
        kernel._execute_sleep = pause_seconds


CHUNK_CHARS = 1024**2
"""How much makes one message, at most about."""


@contextmanager
def chunked_streams() -> Iterator[None]:
    """Have text sent as soon as there is a chunk of it, and wait until it is sent.

    By itself ipykernel collects what comes within a fifth of a second, which can be hundreds
    of megabytes, several copies of which are made on the way to each frontend. And it waits for
    its other thread four times in each cell, also where there is nothing to send.
    """
    streams: list[Any] = [s for s in (sys.stdout, sys.stderr) if hasattr(s, "pub_thread")]
    before = [(stream, stream.write, stream.flush) for stream in streams]
    for stream in streams:
        stream.write, stream.flush = _in_chunks(stream), _where_needed(stream)
    try:
        yield
    finally:
        for stream, write, flush in before:
            stream.write, stream.flush = write, flush


_PENDING = ("_flush_pending", "_subprocess_flush_pending")
"""What ipykernel's streams have set while something is written and not sent."""


def _where_needed(stream: Any) -> Any:
    flush = stream.flush

    def flush_what_was_written() -> None:
        if any(getattr(stream, name, True) for name in _PENDING):
            flush()

    return flush_what_was_written


def _in_chunks(stream: Any) -> Any:
    write = stream.write
    collected = 0

    def write_in_chunks(text: str) -> Any:
        nonlocal collected
        collected += len(text) if isinstance(text, str) else 0
        if collected < CHUNK_CHARS:
            return write(text)
        collected = 0
        for start in range(0, len(text), CHUNK_CHARS):
            write(text[start : start + CHUNK_CHARS])
            stream.flush()
        return len(text)

    return write_in_chunks
