"""Output so far of the running cell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


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
