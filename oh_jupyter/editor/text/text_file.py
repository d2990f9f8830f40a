r"""A text file: its exact bytes, its encoding, and its text with ``\n`` line ends.

Editing the text changes only the corresponding bytes, with any line ends and encoding. Valid UTF-8
is UTF-8; any other guess of an encoding counts only if encoding returns the same bytes.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from oh_jupyter.editor.text.line_diff import common_ends


class Encoding(NamedTuple):
    """Codec of a file, and its byte order mark or b""."""

    name: str
    bom: bytes = b""


UTF8 = Encoding("utf-8")

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_BOMS = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)
_SIGNATURES = (
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x7fELF",
)
_STARTS = (*_SIGNATURES, *(encoding.bom for encoding in _BOMS))
_NUL_WINDOW_BYTES = 8000  # git calls a file with a NUL here binary
_SAMPLE_BYTES = 64 * 1024  # enough to distinguish code pages, and quick
_CANDIDATES = ["cp1252", "cp1251", "cp932", "gb18030", "euc_kr", "big5", "koi8_r", "euc_jp"]
_CODING_LINE = re.compile(rb"^[ \t\f]*(?:#|//|/\*|\"|%|;).*?coding[:=][ \t]*([-\w.]+)")
# Codecs without state, in which an ASCII byte stands for itself.
_STATELESS = ("ascii", "big5", "cp", "euc", "gb", "iso8859", "koi8", "kz1048", "mac", "shift_jis")
_CONTROL = bytes(b for b in range(32) if b not in b"\t\n\r\f\v\b\x1b") + b"\x7f"


def detect(data: bytes) -> Encoding | None:
    """Return the encoding of a whole file; None if it is binary."""
    decoded = decode(data)
    return None if decoded is None else decoded[0]


def decode(data: bytes) -> tuple[Encoding, str] | None:
    """Return the encoding and the text of a whole file; None if it is binary."""
    if not data.startswith(_STARTS) and b"\0" not in data[:_NUL_WINDOW_BYTES]:
        try:
            return UTF8, data.decode()
        except UnicodeDecodeError:
            pass
    encoding = _detect_other(data)
    if encoding is None:
        return None
    return encoding, data[len(encoding.bom) :].decode(encoding.name)


def _detect_other(data: bytes) -> Encoding | None:
    """Detect an encoding other than UTF-8, or UTF-8 with a mark or NULs."""
    for encoding in _BOMS:
        if data.startswith(encoding.bom) and _round_trips(data[len(encoding.bom) :], encoding.name):
            return encoding
    if data.startswith(_SIGNATURES) or b"\0" in data[:_NUL_WINDOW_BYTES]:
        return None
    sample = data[:_SAMPLE_BYTES]
    if b"\0" in data or len(sample.translate(None, _CONTROL)) < 0.997 * len(sample):
        return None
    for name in (_declared(data), _guessed(data), "cp1252"):
        if name is not None and _round_trips(data, name):
            return Encoding(name)
    return Encoding("latin-1")


def _round_trips(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except (UnicodeError, LookupError):
        return False


def _declared(data: bytes) -> str | None:
    """Return the encoding of a coding line of Python, Emacs or Vim in the first two lines."""
    for line in data[:1000].split(b"\n")[:2]:
        match = _CODING_LINE.match(line)
        if match is None:
            continue
        try:
            name = codecs.lookup(match[1].decode("ascii", "replace")).name
        except LookupError:
            return None
        return name if name.startswith(_STATELESS) else None
    return None


def _guessed(data: bytes) -> str | None:
    start = re.search(rb"[\x80-\xff]", data)
    sample = data[start.start() if start else 0 :][:_SAMPLE_BYTES]
    runs = re.findall(rb"[\x80-\xff]+", sample)
    # Single letters among ASCII are a western language, where a statistical guess sees
    # Cyrillic in "für". Cyrillic and East Asian text comes in runs.
    if not runs or sum(map(len, runs)) < 2 * len(runs):
        return None
    from charset_normalizer import from_bytes

    # Whole lines, so that the sample does not end inside a character.
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    for match in from_bytes(sample, cp_isolation=_CANDIDATES):
        # Short Chinese text looks like Korean, but Korean has few Chinese characters.
        text = str(match)
        chinese = sum("\u4e00" <= character <= "\u9fff" for character in text)
        if match.encoding != "euc_kr" or chinese < 0.1 * max(1, len(text)):
            return str(match.encoding)
    return None


class EncodeError(ValueError):
    """The encoding of the file lacks a character."""

    def __init__(self, character: str, encoding: str) -> None:
        super().__init__(f"{character!r} cannot be written in {encoding}")
        self.character = character
        self.encoding = encoding


def to_newlines(text: str) -> str:
    r"""Convert every line end to ``\n``, like Python's text mode."""
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
        """Detect the encoding and decode the text; None if the file is binary."""
        decoded = decode(data)
        return None if decoded is None else cls(data, *decoded)

    @cached_property
    def line_count(self) -> int:
        """Number of lines; a final newline does not start another one."""
        return self.text.count("\n") + (not self.text.endswith("\n") and self.text != "")

    def offset_of_line(self, number: int) -> int:
        """Return the offset of a line counted from 1; the end of the text after the last one."""
        if number <= 1:
            return 0
        if number > self.line_count:
            return len(self.text)
        # Bisect with str.count, which runs in C, unlike a search newline by newline.
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
        """Return a range of lines counted from 1; the last may be past the end."""
        return self.text[self.offset_of_line(first) : self.offset_of_line(last + 1)]

    def around(self, offset: int, before: int, after: int) -> str:
        """Return the lines around an offset, without counting from the start."""
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
        """Return the bytes of the file with a range of the text replaced."""
        if start == 0 and end == len(self.text) and self._raw is self.text and "\r" not in new:
            return self.encoding.bom + self._encode(new)
        return self.replace_many([(start, end, new)])

    def replace_many(self, replacements: Iterable[tuple[int, int, str]]) -> bytes:
        """Return the bytes of the file with several ranges of the text replaced.

        Common ends of old and new text keep their bytes; new lines end like the line before.
        """
        data = memoryview(self.data)  # slices are not copied
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
        """Trim a replacement to the actual change, with the surrounding line ends."""
        if "\r" in new:  # searching for two characters would take as long as writing the file
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
            # Adjacent, the two characters would be one line end.
            new += "\n"
        return first, last, new

    def _size(self, start: int, end: int) -> int:
        """Return the number of bytes of a part of the decoded file."""
        if self.encoding.name == "utf-8" and self._raw.isascii():  # isascii takes constant time
            return end - start
        return len(self._encode(self._raw[start:end]))

    def _to_raw(self, offset: int) -> int:
        """Map an offset in ``text`` to one in the decoded file."""
        if len(self._raw) == len(self.text):
            return offset
        if self._crlf is None:
            pairs = re.finditer("\r\n", self._raw)
            self._crlf = [match.start() - number for number, match in enumerate(pairs)]
        return offset + bisect_left(self._crlf, offset)

    def _newline_near(self, raw_offset: int) -> str:
        """Return the line end for new text at an offset."""
        raw = self._raw
        if raw is self.text:  # it has no other
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
