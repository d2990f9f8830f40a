"""What a shell has written: markers in it, and what nobody has read yet, in bounded memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

END = b"\x1b\\"


@dataclass(frozen=True)
class Marker:
    """A marker: ``b`` before a command, ``e`` after it, ``r`` from a bash that has just started.

    Our own are ``s``, to know that all before it has arrived, and ``x``, at the end of the shell.
    """

    kind: str
    command_id: str = ""
    payload: str = ""  # ASCII; the report of a shell that has no report line


class MarkerParser:
    r"""Separates markers ``ESC ] TOKEN ; KIND ; ID ESC \\`` from output, wherever pieces end.

    No listing of the shell's functions looks like one: they show the token, but no escape
    character.
    """

    def __init__(self, token: str) -> None:
        self._prefix = b"\x1b]" + token.encode() + b";"
        self._pending = b""

    def write(self, marker: Marker) -> bytes:
        """A marker as it stands in the output."""
        return self._prefix + f"{marker.kind};{marker.command_id}".encode() + END

    def split(self, data: bytes) -> Iterator[bytes | Marker]:
        """Output and markers in order; the beginning of a marker is kept until the rest comes."""
        data = self._pending + data
        position = 0
        while (start := data.find(self._prefix, position)) >= 0:
            end = data.find(END, start)
            if end < 0:
                break
            yield data[position:start]
            yield Marker(*data[start + len(self._prefix) : end].decode().split(";", 2))
            position = end + len(END)
        if start < 0:
            start = len(data)
            escape = data.rfind(b"\x1b", max(position, start - len(self._prefix) + 1))
            if escape >= 0 and self._prefix.startswith(data[escape:]):
                start = escape
        self._pending = data[start:]
        yield data[position:start]

    def flush(self) -> bytes:
        """Take what was kept as output, when nothing can follow."""
        pending, self._pending = self._pending, b""
        return pending


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
