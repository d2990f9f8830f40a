"""What is kept of a long output: its beginning and its end, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

__all__ = ["TEXT_KEPT", "Entry", "KeptEntries", "left_out", "shortened"]

TEXT_KEPT = 1024**2
"""Characters that are kept of the beginning of a cell's text, and as many of its end."""

PIECE = 64
"""Characters that each piece counts besides its own, so that empty ones are bounded, too."""


@dataclass
class Entry:
    """One output of a cell.

    Attributes:
        pieces: Its text, in the order of arrival.
        stream: Name of the stream that it is a part of; "" for other outputs, which are kept
            as a whole or not at all.
        data: MIME bundle of a display.
        data_size: Characters of the bundle.
        metadata: What goes with the bundle.
        display_id: Name by which a display may be updated.
        is_result: Whether it is the value of the cell's last line.
        error: An exception, as a notebook stores it.
    """

    pieces: deque[str] = field(default_factory=deque)
    stream: str = ""
    data: dict[str, Any] | None = None
    data_size: int = 0
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
        return sum(len(piece) + PIECE for piece in self.pieces)


def left_out(characters: int) -> str:
    """The notice that stands where something is missing, after the words of the shell's.

    Args:
        characters: How much is missing.

    Returns:
        A line.
    """
    return (
        f"\n[... Observation truncated due to length: {characters} characters are left out ...]\n"
    )


def shortened(text: str, limit: int, missing: int = 0) -> str:
    """Leave out the middle of a long text.

    Args:
        text: The text.
        limit: Characters that it may have.
        missing: Characters that have been left out of it before.

    Returns:
        The text if it is short enough, else the two ends of it with the notice between them.
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    if missing:
        missing -= len(left_out(missing))  # the notice itself is left out, too
    return text[:half] + left_out(len(text) - 2 * half + missing) + text[len(text) - half :]


class KeptEntries:
    """The first and the last outputs of a cell.

    Attributes:
        left_out: Characters between the two that were dropped.
        data_size: Characters of all bundles that are kept.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.left_out = 0
        self.data_size = 0
        self._head: list[Entry] = []
        self._tail: deque[Entry] = deque()
        self._head_room = TEXT_KEPT
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

    def last_lines(self) -> str:
        """A few lines of what came last."""
        entries = self.tail or self.head
        pieces = list(islice(reversed(entries[-1].pieces), 20)) if entries else []
        text = "".join(reversed(pieces))
        return "\n".join(text[-4096:].rstrip().rsplit("\n", 3)[-3:])

    def add_text(self, text: str, stream: str) -> None:
        """Add text of a stream, which goes on where the same stream was last.

        Args:
            text: The text.
            stream: Name of the stream.
        """
        if self._head_room > 0:
            first, text = text[: self._head_room], text[self._head_room :]
            self._head_room -= len(first) + PIECE
            _append(self._head, first, stream)
        if text:
            last = text[-TEXT_KEPT:]
            self.left_out += len(text) - len(last)
            self._tail_size += len(last) + PIECE
            _append(self._tail, last, stream)
            self._trim()

    def add(self, entry: Entry) -> None:
        """Add an output that is kept as a whole or not at all.

        Args:
            entry: The output.
        """
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
        if self._tail_size <= 2 * TEXT_KEPT:
            return
        while self._tail_size > TEXT_KEPT and len(self._tail) + len(self._tail[0].pieces) > 2:
            entry = self._tail[0]
            dropped = [entry.pieces.popleft()] if entry.stream else list(entry.pieces)
            excess = self._tail_size - TEXT_KEPT
            if entry.stream and len(dropped[0]) > excess:
                entry.pieces.appendleft(dropped[0][excess:])
                self._tail_size -= excess
                self.left_out += excess
                return
            self._tail_size -= sum(len(piece) + PIECE for piece in dropped)
            self.left_out += sum(map(len, dropped))
            if not entry.stream or not entry.pieces:
                self.data_size -= entry.data_size
                self._tail.popleft()


def _append(entries: list[Entry] | deque[Entry], text: str, stream: str) -> None:
    if entries and entries[-1].stream == stream:
        entries[-1].pieces.append(text)
    else:
        entries.append(Entry(deque([text]), stream))
