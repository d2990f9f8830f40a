"""What a command has printed and nobody has read yet, in bounded memory."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

MAX_LINES = 11_000
"""Lines that are kept: the 10 000 of history and 1 000 of screen that the protocol's window has."""
MAX_BYTES = 8 * 1024 * 1024
"""Bytes that are kept, however long the lines are."""

# An escape sequence of which the end has not arrived yet; only a short one is waited for.
UNFINISHED_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[\]PX^_][^\x07\x1b]{0,256}\x1b?|[ -/]{0,4})?\Z"
)


@dataclass(frozen=True)
class OutputSlice:
    """Output that was taken out of the buffer."""

    data: bytes
    truncated: bool  # earlier output was dropped, because there was too much of it


class OutputBuffer:
    """The last ``MAX_LINES`` lines and ``MAX_BYTES`` bytes of output, dropped by whole chunks."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[bytes, int]] = deque()
        self._bytes = 0
        self._lines = 0
        self._truncated = False

    def __bool__(self) -> bool:
        return self._bytes > 0

    def append(self, data: bytes) -> None:
        """Add output."""
        if not data:
            return
        lines = data.count(b"\n")
        self._chunks.append((data, lines))
        self._bytes += len(data)
        self._lines += lines
        while self._chunks:
            first, first_lines = self._chunks[0]
            over_lines = self._lines - first_lines > MAX_LINES
            if not over_lines and self._bytes - len(first) < MAX_BYTES:
                break
            self._chunks.popleft()
            self._bytes -= len(first)
            self._lines -= first_lines
            self._truncated = True

    def peek(self, size: int) -> bytes:
        """The last chunks, at least ``size`` bytes where there are as many; they stay."""
        found: list[bytes] = []
        for chunk, _ in reversed(self._chunks):
            found.append(chunk[-size:])
            size -= len(chunk)
            if size <= 0:
                break
        return b"".join(reversed(found))

    def append_line(self, data: bytes) -> None:
        """Add output that begins a line of its own."""
        if self._chunks and not self._chunks[-1][0].endswith(b"\n"):
            data = b"\n" + data
        self.append(data)

    def take(self, final: bool) -> OutputSlice:
        """Take everything out; unless it is final, an unfinished character or sequence stays."""
        data = b"".join(chunk for chunk, _ in self._chunks)
        truncated = self._truncated
        lines = self._lines + (not data.endswith(b"\n"))
        if lines > MAX_LINES:
            data = _last_lines(data, lines - MAX_LINES)
            truncated = True
        if len(data) > MAX_BYTES:
            data = data[-MAX_BYTES:]
            truncated = True
        self._chunks.clear()
        self._bytes = self._lines = 0
        self._truncated = False
        if not final:
            end = _complete_length(data)
            self.append(data[end:])
            data = data[:end]
        return OutputSlice(data, truncated)


def _last_lines(data: bytes, drop: int) -> bytes:
    """Drop that many lines from the beginning."""
    position = 0
    for _ in range(drop):
        position = data.index(b"\n", position) + 1
    return data[position:]


def _complete_length(data: bytes) -> int:
    """Return where a trailing incomplete escape sequence or UTF-8 character begins."""
    escape = UNFINISHED_ESCAPE.search(data, max(0, len(data) - 512))
    if escape:
        return escape.start()
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if 0xC2 <= byte <= 0xF4:
            expected = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < expected else len(data)
        if not 0x80 <= byte < 0xC0:
            break
    return len(data)
