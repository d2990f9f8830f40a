"""Lines of a text file that is too large to be loaded."""

from __future__ import annotations

import codecs
import sys
from typing import BinaryIO

from oh_jupyter.editor.text.encoding import Encoding, detect
from oh_jupyter.editor.text.text_file import TextFile, to_newlines

_HEAD_BYTES = 64 * 1024  # to detect the encoding
_CHUNK_BYTES = 1024 * 1024


def detect_by_head(stream: BinaryIO) -> Encoding | None:
    """Detect the encoding of a file by its first lines; None if it is binary."""
    head = stream.read(_HEAD_BYTES)
    lines = head[: head.rfind(b"\n") + 1] or head
    return detect(lines) or detect(head[: len(head) // 4 * 4])  # UTF-16 and UTF-32 in whole units


def has_wide_newlines(encoding: Encoding) -> bool:
    """Return whether a newline has several bytes, so that lines cannot be sought."""
    return encoding.name.startswith(("utf-16", "utf-32"))


def decode_lines(data: bytes, encoding: Encoding) -> str | None:
    r"""Decode lines, with ``\n`` line ends; None if they are binary.

    The last one may end within a character, which is dropped.
    """
    decoder = codecs.getincrementaldecoder(encoding.name)()
    try:
        return to_newlines(decoder.decode(data.removeprefix(encoding.bom)))
    except UnicodeDecodeError:
        file = TextFile.parse(data)  # only the head is in that encoding
        return None if file is None else file.text


class LineSeeker:
    """Finds byte offsets of lines by counting newlines."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = stream.seek(0, 2)
        self._known = 0, 0  # a line, and the offset of a chunk within it, to continue from
        self.line_count: int | None = None  # known once the end was reached

    def offset_of(self, number: int) -> int | None:
        """Return the offset of a line counted from 0, or of the end; None if there is none."""
        if number <= 0:
            return 0
        if number <= self._known[0]:
            self._known = 0, 0
        line, at = self._known
        self._stream.seek(at)
        last = b""
        while chunk := self._stream.read(_CHUNK_BYTES):
            newlines = chunk.count(b"\n")
            if line + newlines >= number:
                self._known = line, at
                position = -1
                for _ in range(number - line):
                    position = chunk.index(b"\n", position + 1)
                return at + position + 1
            line += newlines
            at += len(chunk)
            last = chunk
        unterminated = bool(self._size) and not last.endswith(b"\n")
        self.line_count = line + unterminated
        return self._size if number == self.line_count else None

    def count(self) -> int:
        """Return the number of lines, reading to the end."""
        self.offset_of(sys.maxsize)
        return self.line_count or 0

    def head(self, first: int, last: int, max_bytes: int) -> bytes:
        """Read the start of a range of lines, counted from 1."""
        start, end = self.offset_of(first - 1) or 0, self.offset_of(last)
        self._stream.seek(start)
        return self._stream.read(min((self._size if end is None else end) - start, max_bytes))

    def read(self, start: int, end: int, max_bytes: int) -> bytes | None:
        """Read the lines ``[start, end)``, counted from 0; -1 is the end. None over the limit.

        As in the protocol, an explicit end reads at least one line, and moves a start in the last
        line one line up.
        """
        first = self.offset_of(start)
        if first is None:
            start, first = self.line_count or 0, self._size
        last: int | None = None
        if end != -1:
            if self.offset_of(start + 2) is None:
                start = max(0, min(start, (self.line_count or 0) - 2))
                first = self.offset_of(start) or 0
            last = self.offset_of(max(start + 1, end))
        last = self._size if last is None else last
        if last - first > max_bytes:
            return None
        self._stream.seek(first)
        return self._stream.read(last - first)
