"""Output so far of a person's running cell."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

MAX_CHARS = 20_000


class LiveOutput:
    """The end of what a cell has printed; written by any thread of the cell."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._chars = 0

    @property
    def text(self) -> str:
        """The last characters."""
        return "".join(tuple(self._texts))[-MAX_CHARS:]

    def add(self, text: str) -> None:
        """Add a text, and forget what is too long ago."""
        self._texts.append(text[-MAX_CHARS:])
        self._chars += min(len(text), MAX_CHARS)
        while self._chars - len(self._texts[0]) > MAX_CHARS:
            self._chars -= len(self._texts.popleft())

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the standard streams."""
        with ExitStack() as stack:
            for stream in (sys.stdout, sys.stderr):
                stack.enter_context(_followed(stream, self.add))
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
