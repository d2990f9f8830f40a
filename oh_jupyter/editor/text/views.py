"""Numbered lines, also of a file that is too large to be loaded, and directory listings."""

from __future__ import annotations

import base64
import codecs
import os
import sys
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from operator import add, attrgetter
from pathlib import Path
from typing import BinaryIO

from oh_jupyter.editor.files.path_guard import opened_directory
from oh_jupyter.editor.messages import DIRECTORY_CLIPPED, TEXT_CLIPPED, invalid
from oh_jupyter.editor.text.text_file import Encoding, TextFile, detect, to_newlines
from oh_jupyter.text import shorten

MAX_VIEW_CHARS = 16_000
"""Maximum length of what a view shows; a notice follows."""
_MAX_CACHED_NUMBERS = 2000
_NAME = attrgetter("name")

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""Media types of the images that are shown, by suffix."""


def number_lines(text: str, description: object, first: int = 1) -> str:
    """Return the text as ``cat -n`` shows it, with a heading."""
    lines = shorten(text, MAX_VIEW_CHARS, marker=TEXT_CLIPPED).split("\n")
    numbered = "\n".join(map(add, _line_numbers(first, len(lines)), lines))
    return f"Here's the result of running `cat -n` on {description}:\n{numbered}\n"


def _line_numbers(first: int, count: int) -> Sequence[str]:
    if first + count <= _MAX_CACHED_NUMBERS:
        return _small_line_numbers()[first - 1 : first - 1 + count]
    return [f"{number:6}\t" for number in range(first, first + count)]


@cache
def _small_line_numbers() -> list[str]:
    """Format the first line numbers once: that takes most of the time of a view."""
    return [f"{number:6}\t" for number in range(1, _MAX_CACHED_NUMBERS)]


def view_lines(file: TextFile, path: Path, view_range: list[int] | tuple[int, int]) -> str:
    """Return the numbered lines of a range counted from 1; -1 is the end."""
    first, last, note = check_range(view_range, file.line_count)
    text = file.lines(first, last)
    return note + number_lines(text.removesuffix("\n"), path, first)


def check_range(view_range: list[int] | tuple[int, int], count: int) -> tuple[int, int, str]:
    """Validate a range; return its first and last line, and a note if the file is shorter."""
    first, last = two_integers(view_range)
    if not 1 <= first <= count:
        lines = f"the range of lines of the file: {[1, count]}."
        hint = f"Its first element `{first}` should be within {lines}"
        raise invalid("view_range", view_range, hint)
    note = ""
    if last > count:
        note = f"NOTE: We only show up to {count} since there're only {count} lines in this file.\n"
    if last == -1 or last > count:
        last = count
    if last < first:
        hint = f"Its second element `{last}` should be greater than or equal to the first element"
        raise invalid("view_range", view_range, f"{hint} `{first}`.")
    return first, last, note


def two_integers(view_range: list[int] | tuple[int, int]) -> tuple[int, int]:
    """Validate the type of a range, and return its ends."""
    if (
        not isinstance(view_range, list | tuple)
        or len(view_range) != 2
        or not all(isinstance(number, int) for number in view_range)
    ):
        raise invalid("view_range", view_range, "It should be a list of two integers.")
    return int(view_range[0]), int(view_range[1])


def list_directory(path: Path) -> str:
    """List a directory two levels deep, as far as it is readable."""
    entries = [f"{path}/"]
    length = 0
    with opened_directory(str(path)) as directory:
        children = _children(directory)
        for child in children:
            if not child.name.startswith("."):
                entries += _with_children(child, os.path.join(path, child.name))
                length += len(entries[-1])
            if length > MAX_VIEW_CHARS:
                break
    # Names that are not valid text cannot be sent as JSON.
    listing = os.fsencode("\n".join(entries)).decode("utf-8", "replace")
    if len(listing) > MAX_VIEW_CHARS:
        listing = listing[: listing.rfind("\n", 0, MAX_VIEW_CHARS) + 1] + DIRECTORY_CLIPPED
    # In a sorted list they are adjacent: "/" is the character after ".".
    first, last = (bisect_left(children, start, key=_NAME) for start in "./")
    hidden = last - first
    text = (
        f"Here's the files and directories up to 2 levels deep in {path}, "
        f"excluding hidden items:\n{listing}"
    )
    if hidden:
        text += (
            f"\n\n{hidden} hidden files/directories in this directory are excluded. "
            f"You can use 'ls -la {path}' to see them."
        )
    return text


def _with_children(entry: os.DirEntry[str], path: str) -> list[str]:
    if not _is_directory(entry):
        return [path]
    shown: list[str] = []
    with suppress(OSError), opened_directory(path) as directory:
        shown = [
            os.path.join(path, child.name) + ("/" if _is_directory(child) else "")
            for child in _children(directory)
            if not child.name.startswith(".")
        ]
    return [f"{path}/", *shown]


def _children(directory: int | str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return sorted(entries, key=_NAME)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links, on some systems
        return False


def data_url(data: bytes, media_type: str) -> str:
    """Return the bytes as a data URL."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


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
