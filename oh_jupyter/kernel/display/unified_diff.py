"""Hunks and lines of a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LineKind = Literal["header", "place", "added", "removed", "context"]
"""What a line of a diff is; ``place`` is the line that begins a hunk."""

_PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADERS = ("--- ", "+++ ")
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed"}


@dataclass(frozen=True)
class Hunk:
    """A part of a diff.

    Attributes:
        place: The line that begins it, as it is.
        old: The lines before, counted from 0.
        new: The lines after, counted from 0.
        lines: The lines with their signs.
    """

    place: str
    old: range
    new: range
    lines: tuple[str, ...]


def parse_diff(diff: str) -> list[str | Hunk]:
    """Split a diff into hunks and the lines between them."""
    lines = diff.split("\n")
    parts: list[str | Hunk] = []
    position = 0
    while position < len(lines):
        found = _PLACE.match(lines[position])
        if found is None:
            parts.append(lines[position])
            position += 1
            continue
        old, new = _range(found[1], found[2]), _range(found[3], found[4])
        body = tuple(_body(lines, position + 1, len(old), len(new)))
        parts.append(Hunk(lines[position], old, new, body))
        position += 1 + len(body)
    return parts


def diff_lines(diff: str) -> Iterator[tuple[LineKind, str]]:
    """Tell what each line of a diff is."""
    for part in parse_diff(diff):
        if isinstance(part, str):
            yield ("header" if part.startswith(_HEADERS) else "context"), part
            continue
        yield "place", part.place
        for line in part.lines:
            yield _KINDS.get(line[:1], "context"), line


def _range(first: str, length: str | None) -> range:
    # A range without lines names the line before it.
    count = 1 if length is None else int(length)
    start = int(first) - (count > 0)
    return range(start, start + count)


def _body(lines: list[str], start: int, old: int, new: int) -> Iterator[str]:
    """The lines of a hunk, at most as many as were announced."""
    for number in range(start, len(lines)):
        line, sign = lines[number], lines[number][:1]
        if sign == "\\":  # "\ No newline at end of file" is a remark on the line before
            yield line
            continue
        old -= sign in ("-", " ", "")
        new -= sign in ("+", " ", "")
        if old < 0 or new < 0 or sign not in ("+", "-", " ", ""):
            return
        yield line
