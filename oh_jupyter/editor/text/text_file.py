r"""A text file: exact bytes on one side, text with ``\n`` line ends on the other.

An edit of the text lands in the bytes; all others stay, whatever line ends and encoding there are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import BinaryIO

from oh_jupyter.editor.text.encoding import UTF8, Encoding, decode
from oh_jupyter.editor.text.line_diff import common_ends


class EncodeError(ValueError):
    """A character does not exist in the encoding of the file."""

    def __init__(self, character: str, encoding: str) -> None:
        super().__init__(f"{character!r} cannot be written in {encoding}")
        self.character = character
        self.encoding = encoding


def to_newlines(text: str) -> str:
    r"""Turn every line end into ``\n``, as Python's text mode does."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


class TextFile:
    r"""Exact bytes and normalized text of a file."""

    def __init__(self, data: bytes, encoding: Encoding = UTF8, decoded: str | None = None) -> None:
        self.data = data
        self.encoding = encoding
        if decoded is None:
            decoded = data[len(encoding.bom) :].decode(encoding.name)
        self._raw = decoded
        self.text = to_newlines(self._raw)
        self._crlf: list[int] | None = None

    @classmethod
    def parse(cls, data: bytes) -> TextFile | None:
        """Text file of detected encoding; None if it is binary."""
        found = decode(data)
        return None if found is None else cls(data, *found)

    @cached_property
    def line_count(self) -> int:
        """Number of lines; a newline at the very end starts no further one."""
        return self.text.count("\n") + (not self.text.endswith("\n") and self.text != "")

    def offset_of_line(self, number: int) -> int:
        """Offset of a line counted from 1; of one past the last, the end."""
        if number <= 1:
            return 0
        if number > self.line_count:
            return len(self.text)
        # Bisect by counting, which runs in C; searching newline by newline does not.
        low, high, missing = 0, len(self.text), number - 1
        while high - low > 1:
            middle = (low + high) // 2
            newlines = self.text.count("\n", low, middle)
            if newlines >= missing:
                high = middle
            else:
                low, missing = middle, missing - newlines
        return high

    def lines(self, first: int, last: int) -> str:
        """Lines counted from 1, the last of which may be past the end."""
        return self.text[self.offset_of_line(first) : self.offset_of_line(last + 1)]

    def around(self, offset: int, before: int, after: int) -> str:
        """Lines around an offset, found without counting from the start."""
        start = end = offset
        for _ in range(before + 1):
            start = self.text.rfind("\n", 0, start)
            if start < 0:
                break
        for _ in range(after + 1):
            newline = self.text.find("\n", end)
            if newline < 0:
                return self.text[start + 1 :]
            end = newline + 1
        return self.text[start + 1 : end]

    def replace(self, start: int, end: int, new: str) -> bytes:
        """Bytes of the file with other text in the place of a range."""
        if start == 0 and end == len(self.text) and self._raw is self.text and "\r" not in new:
            return self.encoding.bom + self._encode(new)
        return self.replace_many([(start, end, new)])

    def replace_many(self, replacements: Iterable[tuple[int, int, str]]) -> bytes:
        """Put other texts in the place of several ranges.

        What old and new have in common keeps its bytes; new lines end as the nearest line before.
        """
        data = memoryview(self.data)  # its slices are not copied
        at_byte = len(self.encoding.bom)
        at = 0
        pieces: list[bytes | memoryview] = [data[:at_byte]]
        for replacement in replacements:
            first, last, new = self._fitted(*replacement)
            head = at_byte + self._size(at, first)
            pieces += [data[at_byte:head], self._encode(new)]
            at_byte = head + self._size(first, last)
            at = last
        pieces.append(data[at_byte:])
        return b"".join(pieces)

    def _fitted(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """Cut a replacement down to what changes, with the line ends of its surroundings."""
        if "\r" in new:  # to look for two signs takes as long as to write the file
            new = new.replace("\r\n", "\n")
        prefix, suffix = common_ends(self.text[start:end], new)
        start, end, new = start + prefix, end - suffix, new[prefix : len(new) - suffix]
        first, last = self._to_raw(start), self._to_raw(end)
        newline = self._newline_near(first)
        if newline != "\n":
            new = new.replace("\n", newline)
        if (new or self._raw[max(0, first - 1) : first])[-1:] == "\r" and self._raw[
            last : last + 1
        ] == "\n":
            # Side by side they would be one line end; with one more newline they are two.
            new += "\n"
        return first, last, new

    def _size(self, start: int, end: int) -> int:
        """Number of bytes of a part of the decoded file."""
        if self.encoding.name == "utf-8" and self._raw.isascii():  # a text knows that of itself
            return end - start  # a byte is a character: nothing to encode for the offsets
        return len(self._encode(self._raw[start:end]))

    def _to_raw(self, offset: int) -> int:
        """Map an offset in ``text`` to one in the undecorated decoded file."""
        if len(self._raw) == len(self.text):
            return offset
        if self._crlf is None:
            pairs = re.finditer("\r\n", self._raw)
            self._crlf = [match.start() - number for number, match in enumerate(pairs)]
        return offset + bisect_left(self._crlf, offset)

    def _newline_near(self, raw_offset: int) -> str:
        """Find the line end that new text at this place should use."""
        raw = self._raw
        if raw is self.text:  # so there is no other
            return "\n"
        before = max(raw.rfind("\n", 0, raw_offset), raw.rfind("\r", 0, raw_offset))
        if before >= 0:
            return "\r\n" if raw[before - 1 : before + 1] == "\r\n" else raw[before]
        match = re.compile("\r\n|\r|\n").search(raw, raw_offset)
        return match[0] if match else "\n"

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode(self.encoding.name)
        except UnicodeEncodeError as error:
            raise EncodeError(text[error.start], self.encoding.name) from None


_CHUNK_BYTES = 1024 * 1024


class LineSeeker:
    """Byte offsets of lines, found by counting; lines end in a newline."""

    def __init__(self, stream: BinaryIO) -> None:
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

        With an explicit end, a start in the last line becomes the last line but one, and at least
        one line is read, as in the protocol.
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
