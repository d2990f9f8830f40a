"""Hunks and lines of a unified diff, for display."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LineKind = Literal["header", "place", "added", "removed", "context"]
"""Kind of a diff's line; ``place`` is the first line of a hunk."""

_PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADERS = ("--- ", "+++ ")
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed"}


@dataclass(frozen=True)
class DiffHunk:
    """A hunk of a diff.

    Attributes:
        place: Its first line.
        old: The old lines, counted from 0.
        new: The new lines, counted from 0.
        lines: The lines with their signs.
    """

    place: str
    old: range
    new: range
    lines: tuple[str, ...]


def parse_diff(diff: str) -> list[str | DiffHunk]:
    """Split a diff into hunks and the lines between them."""
    lines = diff.split("\n")
    parts: list[str | DiffHunk] = []
    position = 0
    while position < len(lines):
        match = _PLACE.match(lines[position])
        if match is None:
            parts.append(lines[position])
            position += 1
            continue
        old, new = _range(match[1], match[2]), _range(match[3], match[4])
        body = tuple(_body(lines, position + 1, len(old), len(new)))
        parts.append(DiffHunk(lines[position], old, new, body))
        position += 1 + len(body)
    return parts


def with_relative_paths(diff: str, root: str) -> str:
    """Return a diff whose headers name the files below a directory relative to it."""
    parts = (
        _relative_header(part, root)
        if isinstance(part, str)
        else "\n".join((part.place, *part.lines))
        for part in parse_diff(diff)
    )
    return "\n".join(parts)


def _relative_header(line: str, root: str) -> str:
    if not root or not line.startswith(_HEADERS):
        return line
    sign, path = line[:4], line[4:]
    return sign + shown_path(path, root)


def shown_path(path: str, root: str) -> str:
    """Return a path as people name it: relative to the workspace, absolute outside of it."""
    return path.removeprefix(os.path.join(root, "")) if root else path


def diff_lines(diff: str) -> Iterator[tuple[LineKind, str]]:
    """Yield each line of a diff with its kind."""
    for part in parse_diff(diff):
        if isinstance(part, str):
            yield ("header" if part.startswith(_HEADERS) else "context"), part
            continue
        yield "place", part.place
        for line in part.lines:
            yield _KINDS.get(line[:1], "context"), line


def _range(first: str, length: str | None) -> range:
    # An empty range names the line before it.
    count = 1 if length is None else int(length)
    start = int(first) - (count > 0)
    return range(start, start + count)


def _body(lines: list[str], start: int, old: int, new: int) -> Iterator[str]:
    """Yield the lines of a hunk, no more than its first line announces."""
    for number in range(start, len(lines)):
        line, sign = lines[number], lines[number][:1]
        if sign == "\\":  # "\ No newline at end of file" belongs to the previous line
            yield line
            continue
        old -= sign in ("-", " ", "")
        new -= sign in ("+", " ", "")
        if old < 0 or new < 0 or sign not in ("+", "-", " ", ""):
            return
        yield line
