"""Outputs of agents' cells: in chunks, out of IPython's history, hidden by their own text.

Also the output so far of any running cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any


class _DiscardingHistory(dict[int, list[Any]]):
    """A history that returns a list for each cell and stores none."""

    def __missing__(self, key: int) -> list[Any]:
        return []


@contextmanager
def without_output_history(shell: Any) -> Iterator[None]:
    """Keep the outputs of a cell out of the export by ``%notebook``.

    IPython (since 9.0) stores everything that is printed, by the number of the cell. Agents' cells
    have no numbers: their outputs would appear below the person's next cell and stay in memory.
    """
    history = getattr(shell, "history_manager", None)
    outputs = getattr(history, "outputs", None)
    if history is None or outputs is None:
        yield
        return
    history.outputs = _DiscardingHistory()
    try:
        yield
    finally:
        history.outputs = outputs


def is_silenced(shell: Any, code: str) -> bool:
    """Return whether a cell's text ends with the ``;`` that hides its result."""
    return bool(shell.displayhook.semicolon_at_end_of_expression(shell.transform_cell(code)))


@contextmanager
def silenced_by_itself(shell: Any, code: str) -> Iterator[None]:
    """Hide the result of an unnumbered cell by its own ``;``.

    IPython looks at the last cell of the history, which is another one.
    """
    hook = shell.displayhook
    hook.quiet = partial(is_silenced, shell, code)
    try:
        yield
    finally:
        hook.__dict__.pop("quiet", None)


@contextmanager
def replied_at_once(kernel: Any) -> Iterator[None]:
    """Remove ipykernel's pause before the reply.

    ipykernel sleeps there for clients that take the reply for the end of a cell's outputs. Ours
    waits for the idle status, which follows the outputs on the same channel.
    """
    pause_seconds = getattr(kernel, "_execute_sleep", 0)
    kernel._execute_sleep = 0
    try:
        yield
    finally:
        kernel._execute_sleep = pause_seconds


_RASTER = ("image/png", "image/jpeg")
_VECTOR = ("image/svg+xml", "application/pdf")


@contextmanager
def figures_as_png(shell: Any) -> Iterator[None]:
    """Add a PNG to figures that the notebook shows as SVG or PDF, which models cannot see."""
    formatter = shell.display_formatter
    original = formatter.format

    def format(obj: Any, *args: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = original(obj, *args, **options)
        is_vector = any(kind in data for kind in _VECTOR) and not any(
            kind in data for kind in _RASTER
        )
        figures = sys.modules.get("matplotlib.figure")
        if is_vector and figures is not None and isinstance(obj, figures.Figure):
            from IPython.core.pylabtools import print_figure

            data["image/png"] = print_figure(obj, "png", base64=True)
        return data, metadata

    formatter.format = format
    try:
        yield
    finally:
        formatter.__dict__.pop("format", None)


CHUNK_CHARS = 1024**2
"""Approximate maximum size of a message."""


@contextmanager
def chunked_streams() -> Iterator[None]:
    """Send text as soon as there is a chunk of it, and wait until it is sent.

    By default, ipykernel collects text for a fifth of a second, which can be hundreds of megabytes,
    and copies it several times for each frontend. It also waits for its other thread four times in
    each cell, even without output.
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
"""Attributes of ipykernel's streams that are set while text is unsent."""


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


@contextmanager
def followed(add: Callable[[str], None]) -> Iterator[None]:
    """Report what is written to the standard streams, on any thread of a cell."""
    with ExitStack() as stack:
        for stream in (sys.stdout, sys.stderr):
            stack.enter_context(_followed(stream, add))
        yield


@contextmanager
def _followed(stream: Any, add: Callable[[str], None]) -> Iterator[None]:
    """Report what is written to a stream of the kernel."""
    write = stream.write

    def follow(text: str) -> Any:
        written = write(text)
        add(text)
        return written

    stream.write = follow
    try:
        yield
    finally:
        if stream.__dict__.get("write") is follow:
            del stream.write
