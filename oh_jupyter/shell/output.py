"""Markers in a shell's output, and a bounded buffer for unread output."""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

END = b"\x1b\\"


@dataclass(frozen=True)
class Marker:
    """A marker: ``b`` before a command, ``e`` after it, ``r`` from a new bash.

    We write ``s`` ourselves, to know that all earlier output has arrived, and ``x`` at the shell's
    end.
    """

    kind: str
    command_id: str = ""
    payload: str = ""  # ASCII; the report of a shell without a report line


class MarkerParser:
    r"""Separates markers ``ESC ] TOKEN ; KIND ; ID ESC \\`` from output that arrives in chunks.

    A listing of the shell's functions shows the token, but no escape character.
    """

    def __init__(self, token: str) -> None:
        self._prefix = b"\x1b]" + token.encode() + b";"
        self._pending = b""

    def write(self, marker: Marker) -> bytes:
        """Return the bytes of a marker."""
        return self._prefix + f"{marker.kind};{marker.command_id}".encode() + END

    def split(self, data: bytes) -> Iterator[bytes | Marker]:
        """Yield output and markers in order; keep an incomplete marker for the next call."""
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
        """Return an incomplete marker as output, at the end."""
        pending, self._pending = self._pending, b""
        return pending


MAX_LINES = 11_000
"""Maximum number of lines: 10 000 of history and 1 000 of screen, as in the protocol."""
MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of the output."""
MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Maximum size of the earlier output that is kept for a command's file."""
HEAD_BYTES = 2000
"""Size of the beginning that is kept although it is dropped from the output."""

# The beginning of a short escape sequence whose end has not arrived yet.
UNFINISHED_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[\]PX^_][^\x07\x1b]{0,256}\x1b?|[ -/]{0,4})?\Z"
)


@dataclass(frozen=True)
class OutputSlice:
    """Output taken from the buffer."""

    data: bytes
    truncated: bool  # whether earlier output exceeded a limit and was dropped
    head: bytes = b""  # first lines, if the output was truncated


class OutputBuffer:
    """Buffer for the last ``MAX_LINES`` lines and ``MAX_BYTES`` bytes of output.

    With ``keep_all``, earlier output moves to a temporary file instead of being dropped.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[bytes, int]] = deque()
        self._bytes = 0
        self._lines = 0
        self._truncated = False
        self._head = b""
        self._keeps_all = False
        self._earlier: IO[bytes] | None = None
        self._lost_bytes = 0

    def keep_all(self) -> None:
        """Keep earlier output, too, from now on."""
        self._keeps_all = True

    def __bool__(self) -> bool:
        return self._bytes > 0

    def append(self, data: bytes) -> None:
        """Add output."""
        if not data:
            return
        lines = data.count(b"\n")
        self._head += data[: HEAD_BYTES - len(self._head)]
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
            if self._keeps_all:
                self._put_aside(first)
            else:
                self._truncated = True

    def _put_aside(self, data: bytes) -> None:
        """Move as much output to the file as it may hold, and count the rest as lost."""
        stored = b""
        try:
            if self._earlier is None:
                self._earlier = tempfile.TemporaryFile()  # noqa: SIM115 - until it is taken
            if not self._lost_bytes:
                stored = data[: MAX_KEPT_BYTES - self._earlier.tell()]
                self._earlier.write(stored)
        except OSError:  # the disk is full
            stored = b""
        self._lost_bytes += len(data) - len(stored)

    def _take_earlier(self) -> bytes:
        """Take the output in the file, with a note about the lost rest."""
        file, self._earlier = self._earlier, None
        lost, self._lost_bytes = self._lost_bytes, 0
        data = b""
        if file is not None:
            with file:
                file.seek(0)
                data = file.read()
        return data + (f"\n[... {lost} bytes were not kept ...]\n".encode() if lost else b"")

    def peek(self, size: int) -> bytes:
        """Return the last ``size`` bytes without taking them."""
        chunks: list[bytes] = []
        for chunk, _ in reversed(self._chunks):
            chunks.append(chunk[-size:])
            size -= len(chunk)
            if size <= 0:
                break
        return b"".join(reversed(chunks))

    def append_line(self, data: bytes) -> None:
        """Add output on a new line."""
        if self._chunks and not self._chunks[-1][0].endswith(b"\n"):
            data = b"\n" + data
        self.append(data)

    def take(self, final: bool, *, whole: bool = False) -> OutputSlice:
        """Take all output; unless it is final, keep an incomplete character or escape sequence.

        ``whole`` includes earlier output, if the buffer has kept that.
        """
        data = b"".join(chunk for chunk, _ in self._chunks)
        truncated = self._truncated
        lines = self._lines + (not data.endswith(b"\n"))
        earlier = self._take_earlier()
        if whole and self._keeps_all:
            data = earlier + data
        elif lines > MAX_LINES:
            data = _last_lines(data, lines - MAX_LINES)
            truncated = True
        elif earlier:
            truncated = True
        if not (whole and self._keeps_all) and len(data) > MAX_BYTES:
            data = data[-MAX_BYTES:]
            truncated = True
        self._chunks.clear()
        self._bytes = self._lines = 0
        head = self._head[: self._head.rfind(b"\n") + 1] if truncated else b""
        self._truncated, self._head = False, b""
        if not final:
            end = _complete_length(data)
            self.append(data[end:])
            data = data[:end]
        return OutputSlice(data, truncated, head)


def _last_lines(data: bytes, drop: int) -> bytes:
    """Drop lines from the beginning."""
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
