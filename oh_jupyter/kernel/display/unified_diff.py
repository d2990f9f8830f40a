"""Unified diffs: their hunks, and an edit's diff for people, with the lines around a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from oh_jupyter.events import FileEditObservation

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


def place(old: range, new: range) -> str:
    """Write the line that begins a hunk."""
    return f"@@ -{_written(old)} +{_written(new)} @@"


def _range(first: str, length: str | None) -> range:
    # A range without lines names the line before it.
    count = 1 if length is None else int(length)
    start = int(first) - (count > 0)
    return range(start, start + count)


def _written(lines: range) -> str:
    if len(lines) == 1:
        return str(lines.start + 1)
    return f"{lines.start + (len(lines) > 0)},{len(lines)}"


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


_CONTEXT_LINES = 3
_SNIPPET = "Here's the result of running `cat -n` on "
_NUMBERED = re.compile(r" *(\d+)\t(.*)")
_CREATED = re.compile(r"(?:File created successfully at: |- created )(.*)")
_DELETED = re.compile(r"- deleted (.*)")
_PATH = "+++ "


def is_dry_run(observation: FileEditObservation) -> bool:
    """Whether an edit was only tried, and nothing was written."""
    return observation.content.startswith("DRY RUN: ")


def readable_diff(observation: FileEditObservation) -> str:
    """The diff of an edit, completed from what the Observation says."""
    said = observation.content.split("\n")
    created, deleted = set(_names(_CREATED, said)), set(_names(_DELETED, said))
    if observation.impl_source == "llm_based_edit" and not observation.prev_exist:
        created.add(observation.path)
    around = _known_lines(observation, said)
    lines: list[str] = []
    path = ""
    for whole, group in groupby(parse_diff(observation.diff or ""), lambda p: isinstance(p, Hunk)):
        if not whole:
            lines += map(str, group)
            path = lines[-1].removeprefix(_PATH)
            continue
        hunks = [part for part in group if isinstance(part, Hunk)]
        if path in created:
            lines += _one_piece(hunks, "+", lambda hunk: hunk.new)
        elif path in deleted:
            lines += _one_piece(hunks, "-", lambda hunk: hunk.old)
        else:
            lines += _with_context(hunks, around)
    return "\n".join(lines)


def _names(pattern: re.Pattern[str], said: Iterable[str]) -> Iterator[str]:
    return (found[1] for line in said if (found := pattern.fullmatch(line)))


def _known_lines(observation: FileEditObservation, said: list[str]) -> dict[int, str]:
    """Lines of the file after the edit, by their number from 0."""
    if observation.impl_source == "llm_based_edit":
        lines = (observation.new_content or "").split("\n")
        return dict(enumerate(lines[:-1] if not lines[-1] else lines))
    known: dict[int, str] = {}
    start = next((n for n, line in enumerate(said, 1) if _SNIPPET in line), len(said))
    for line in said[start:]:
        found = _NUMBERED.fullmatch(line)
        if found is None or (known and int(found[1]) - 2 not in known):
            break
        known[int(found[1]) - 1] = found[2]
    # The last one may be clipped, or stand for the newline that ends the snippet.
    if known:
        known.popitem()
    return known


def _one_piece(hunks: list[Hunk], sign: str, side: Callable[[Hunk], range]) -> list[str]:
    """The hunks of a file that is all new or all gone, as one."""
    lines: list[str] = []
    for hunk in hunks:
        missing = side(hunk).start - len(lines)
        lines += [sign] * missing + [line for line in hunk.lines if line[:1] == sign]
    gaps = len(lines) > sum(len(side(hunk)) for hunk in hunks)
    if gaps and lines[-1] == sign:  # the empty string after the last newline
        lines.pop()
    whole, nothing = range(len(lines)), range(0)
    return [place(nothing, whole) if sign == "+" else place(whole, nothing), *lines]


def _with_context(hunks: list[Hunk], around: dict[int, str]) -> list[str]:
    """The hunks with unchanged lines before and after them, as far as these are known."""
    if not all(_fits(hunk, around) for hunk in hunks):
        around = {}
    lines: list[str] = []
    group: list[Hunk] = []
    for hunk in hunks:
        if group and not _between(group[-1], hunk, around):
            lines += _joined(group, around)
            group = []
        group.append(hunk)
    return lines + _joined(group, around)


def _fits(hunk: Hunk, around: dict[int, str]) -> bool:
    """Whether what is known of the file agrees with a hunk."""
    new = [line[1:] for line in hunk.lines if line[:1] in ("+", " ", "")]
    return all(
        around.get(number, line).rstrip() == line.rstrip()
        for number, line in zip(hunk.new, new, strict=False)
    )


def _between(first: Hunk, second: Hunk, around: dict[int, str]) -> bool:
    """Whether two hunks are so near that the lines between them are all shown."""
    gap = range(first.new.stop, second.new.start)
    return len(gap) <= 2 * _CONTEXT_LINES and all(number in around for number in gap)


def _joined(group: list[Hunk], around: dict[int, str]) -> list[str]:
    first, last = group[0], group[-1]
    start, stop = first.new.start, last.new.stop
    while start - 1 in around and first.new.start - start < _CONTEXT_LINES:
        start -= 1
    while stop in around and stop - last.new.stop < _CONTEXT_LINES:
        stop += 1
    if (start, stop) == (first.new.start, last.new.stop) and len(group) == 1:
        return [first.place, *first.lines]
    lines: list[str] = []
    position = start
    for hunk in group:
        lines += [f" {around[number]}" for number in range(position, hunk.new.start)]
        lines += hunk.lines
        position = hunk.new.stop
    lines += [f" {around[number]}" for number in range(position, stop)]
    lead, trail = first.new.start - start, stop - last.new.stop
    old = range(first.old.start - lead, last.old.stop + trail)
    return [place(old, range(start, stop)), *lines]
