"""What is kept of a long output: its beginning and its end, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

__all__ = ["MAX_HEAD_CHARS", "BoundedEntries", "Entry", "truncate_middle", "truncation_notice"]

MAX_HEAD_CHARS = MAX_TAIL_CHARS = 1024**2
"""Characters that are kept of the beginning of a cell's text, and of its end."""

PIECE_OVERHEAD_CHARS = 64
"""Characters that each piece counts besides its own, so that empty ones are bounded, too."""


@dataclass
class Entry:
    """One output of a cell."""

    pieces: deque[str] = field(default_factory=deque)
    stream: str = ""  # "" for other outputs, which are kept as a whole or not at all
    data: dict[str, Any] | None = None
    data_size: int = 0  # characters
    metadata: dict[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    is_result: bool = False
    error: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Its text as a whole."""
        return "".join(self.pieces)

    @property
    def size(self) -> int:
        """What it counts."""
        return sum(len(piece) + PIECE_OVERHEAD_CHARS for piece in self.pieces)


def truncation_notice(omitted: int) -> str:
    """The line that stands where characters are omitted, in the words of the shell's."""
    return f"\n[... Observation truncated due to length: {omitted} characters are left out ...]\n"


def truncate_middle(text: str, limit: int, omitted: int = 0) -> str:
    """Cut the middle out of a text of more than ``limit`` characters, and count ``omitted`` too."""
    if len(text) <= limit:
        return text
    half = limit // 2
    if omitted:
        omitted -= len(truncation_notice(omitted))  # the notice itself is left out, too
    return (
        text[:half] + truncation_notice(len(text) - 2 * half + omitted) + text[len(text) - half :]
    )


class BoundedEntries:
    """The first and the last outputs of a cell; those between are counted and dropped."""

    def __init__(self) -> None:
        self.omitted_chars = 0
        self.data_size = 0
        self._head: list[Entry] = []
        self._tail: deque[Entry] = deque()
        self._head_room = MAX_HEAD_CHARS
        self._tail_size = 0

    def __iter__(self) -> Iterator[Entry]:
        """The entries in their order."""
        yield from self._head
        yield from self._tail

    @property
    def head(self) -> list[Entry]:
        """The entries before the gap."""
        return self._head

    @property
    def tail(self) -> list[Entry]:
        """The entries behind it."""
        return list(self._tail)

    def last_lines(self, max_lines: int) -> str:
        """A few lines of what came last."""
        entries = self.tail or self.head
        pieces = list(islice(reversed(entries[-1].pieces), 100)) if entries else []
        text = "".join(reversed(pieces))
        return "\n".join(text[-4096:].rstrip().rsplit("\n", max_lines)[-max_lines:])

    def add_text(self, text: str, stream: str) -> None:
        """Add text of a stream, which goes on where the same stream was last."""
        if self._head_room > 0:
            first, text = text[: self._head_room], text[self._head_room :]
            self._head_room -= len(first) + PIECE_OVERHEAD_CHARS
            _append(self._head, first, stream)
        if text:
            last = text[-MAX_TAIL_CHARS:]
            self.omitted_chars += len(text) - len(last)
            self._tail_size += len(last) + PIECE_OVERHEAD_CHARS
            _append(self._tail, last, stream)
            self._trim()

    def add(self, entry: Entry) -> None:
        """Add an output that is kept as a whole or not at all."""
        self.data_size += entry.data_size
        if self._head_room >= entry.size:
            self._head_room -= entry.size
            self._head.append(entry)
            return
        self._head_room = 0
        self._tail_size += entry.size
        self._tail.append(entry)
        self._trim()

    def _trim(self) -> None:
        """Drop the oldest; not with every piece that comes, since the cut copies one."""
        if self._tail_size <= 2 * MAX_TAIL_CHARS:
            return
        while self._tail_size > MAX_TAIL_CHARS and len(self._tail) + len(self._tail[0].pieces) > 2:
            entry = self._tail[0]
            dropped = [entry.pieces.popleft()] if entry.stream else list(entry.pieces)
            excess = self._tail_size - MAX_TAIL_CHARS
            if entry.stream and len(dropped[0]) > excess:
                entry.pieces.appendleft(dropped[0][excess:])
                self._tail_size -= excess
                self.omitted_chars += excess
                return
            self._tail_size -= sum(len(piece) + PIECE_OVERHEAD_CHARS for piece in dropped)
            self.omitted_chars += sum(map(len, dropped))
            if not entry.stream or not entry.pieces:
                self.data_size -= entry.data_size
                self._tail.popleft()


def _append(entries: list[Entry] | deque[Entry], text: str, stream: str) -> None:
    if entries and entries[-1].stream == stream:
        entries[-1].pieces.append(text)
    else:
        entries.append(Entry(deque([text]), stream))
