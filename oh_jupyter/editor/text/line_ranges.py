"""Ranges of lines of files of any size, without reading what is not asked for."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["LineSeeker"]

_CHUNK_BYTES = 1024 * 1024


class LineSeeker:
    """Byte offsets of lines, found by counting; lines end in a newline."""

    def __init__(self, stream: BinaryIO) -> None:
        """Start at the first line of a stream that can seek."""
        self._stream = stream
        self._size = stream.seek(0, 2)
        self._known = 0, 0  # a line and its offset, from which to go on
        self.line_count: int | None = None  # known when the end was reached

    def offset_of(self, number: int) -> int | None:
        """Offset of a line counted from 0, or of the end behind the last; None if there is none."""
        if number <= 0:
            return 0
        if number <= self._known[0]:  # the offset is that of a chunk, within the line
            self._known = 0, 0
        line, at = self._known
        self._stream.seek(at)
        last = b""
        while chunk := self._stream.read(_CHUNK_BYTES):
            found = chunk.count(b"\n")
            if line + found >= number:
                self._known = line, at
                position = -1
                for _ in range(number - line):
                    position = chunk.index(b"\n", position + 1)
                return at + position + 1
            line += found
            at += len(chunk)
            last = chunk
        unterminated = bool(self._size) and not last.endswith(b"\n")
        self.line_count = line + unterminated
        return self._size if number == self.line_count else None

    def read(self, start: int, end: int, max_bytes: int) -> bytes | None:
        """Lines ``[start, end)``, counted from 0; -1 is the end. None if they are too much.

        With an explicit end, a start in the last line becomes the last line but one, and
        at least one line is read, as in the protocol.
        """
        first = self.offset_of(start)
        if first is None:
            start = self.line_count or 0
            first = self._size
        if end == -1:
            last: int | None = self._size
        else:
            if self.offset_of(start + 2) is None:
                start = max(0, min(start, (self.line_count or 0) - 2))
                first = self.offset_of(start) or 0
            last = self.offset_of(max(start + 1, end))
        last = self._size if last is None else last
        if last - first > max_bytes:
            return None
        self._stream.seek(first)
        return self._stream.read(last - first)
