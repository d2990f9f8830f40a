"""Hunk location: exact, then by ever looser grades, and never ambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from oh_jupyter.editor.patch import Hunk
from oh_jupyter.editor.text.fuzzy import ASCII


class Grade(Enum):
    """Grade of a match between hunk and file."""

    EXACT = "exactly"
    BLANKS = "except for blanks at line ends"
    INDENTATION = "except for the indentation"
    UNICODE = "except for the kind of quotes, dashes or spaces"


@dataclass(frozen=True)
class Place:
    """Range of lines that a hunk matches."""

    start: int  # the first line, counted from 0
    end: int
    grade: Grade = Grade.EXACT
    removed: str = ""
    added: str = ""


class Ambiguous(Exception):
    """A hunk fits in several places."""

    def __init__(self, starts: Sequence[int]) -> None:
        super().__init__("several places")
        self.starts = starts


def locate(lines: Sequence[str], hunk: Hunk) -> Place | None:
    """The one place of a hunk, or None; raises Ambiguous for several."""
    if not hunk.old:
        return _place_of_insertion(lines, hunk)
    for find in (_exact, _without_trailing_blanks, _indented, _plain):
        places = find(lines, hunk.old)
        if places:
            return _only(lines, places, hunk)
    return None


def find_applied(lines: Sequence[str], hunk: Hunk) -> int | None:
    """First line, from 0, of the place where a hunk was applied before; None if unclear."""
    new = hunk.new
    if not any(len(re.findall(r"\w", line)) >= 2 for line in new):
        return None  # a closing bracket is everywhere
    places = _exact(lines, new) or _without_trailing_blanks(lines, new)
    return places[0].start if len(places) == 1 else None


def is_applied_at(lines: Sequence[str], hunk: Hunk, place: Place) -> bool:
    """Whether lines that a hunk adds at an end of its context are there already."""
    old, new = hunk.old, hunk.new
    if len(new) <= len(old) or not any(line.strip() for line in new):
        return False
    start = place.end - len(new)
    below = new[: len(old)] == old and list(lines[place.start : place.start + len(new)]) == new
    above = new[len(new) - len(old) :] == old and start >= 0
    return below or (above and list(lines[start : place.end]) == new)


def _place_of_insertion(lines: Sequence[str], hunk: Hunk) -> Place | None:
    if not hunk.anchors:
        return Place(len(lines), len(lines)) if hunk.at_end or not lines else None
    scopes = _scopes(lines, hunk.anchors)
    if len(scopes) > 1:
        raise Ambiguous([start for start, _ in scopes])
    return Place(scopes[0][0] + 1, scopes[0][0] + 1) if scopes else None


def _only(lines: Sequence[str], places: list[Place], hunk: Hunk) -> Place | None:
    """Choose the place that the rest of the hunk tells; one place is left as it is."""
    if hunk.at_end:
        at_end = [place for place in places if place.end == len(lines)]
        places = at_end or places
    if len(places) > 1 and hunk.anchors:
        scopes = _scopes(lines, hunk.anchors)
        inside = [p for p in places if any(s < p.end and p.end <= e for s, e in scopes)]
        after = [p for p in places if any(s < p.end for s, _ in scopes)]
        places = inside or after or places
    if len(places) > 1 and hunk.hint is not None:
        places = [place for place in places if place.start == (hunk.hint or 0) - 1] or places
    if len(places) > 1:
        raise Ambiguous([place.start for place in places])
    return places[0]


def _scopes(lines: Sequence[str], anchors: Sequence[str]) -> list[tuple[int, int]]:
    """Find the lines that anchors name, and where what is indented below them ends."""
    scopes = [(-1, len(lines))]
    for anchor in anchors:
        scopes = [
            (number, _end_of_scope(lines, number, end))
            for start, end in scopes
            for number in range(start + 1, end)
            if lines[number].strip() == anchor.strip()
        ] or [
            (number, _end_of_scope(lines, number, end))
            for start, end in scopes
            for number in range(start + 1, end)
            if lines[number].strip().startswith(anchor.strip())
        ]
    return scopes


def _end_of_scope(lines: Sequence[str], start: int, limit: int) -> int:
    width = len(_indentation(lines[start]))
    for number in range(start + 1, limit):
        if lines[number].strip() and len(_indentation(lines[number])) <= width:
            # a bracket that closes what the line opened belongs to it
            return number + (lines[number].lstrip()[0] in ")]}")
    return limit


def _exact(lines: Sequence[str], old: list[str]) -> list[Place]:
    return _matching(lines, old, str, Grade.EXACT)


def _without_trailing_blanks(lines: Sequence[str], old: list[str]) -> list[Place]:
    return _matching(lines, old, str.rstrip, Grade.BLANKS)


def _plain(lines: Sequence[str], old: list[str]) -> list[Place]:
    return _matching(lines, old, lambda line: line.translate(ASCII).rstrip(), Grade.UNICODE)


def _matching(
    lines: Sequence[str], old: list[str], normal: Callable[[str], str], grade: Grade
) -> list[Place]:
    wanted = [normal(line) for line in old]
    have = lines if normal is str else [normal(line) for line in lines]
    size = len(wanted)
    return [
        Place(start, start + size, grade)
        for start in range(len(have) - size + 1)
        if have[start] == wanted[0] and list(have[start : start + size]) == wanted
    ]


def _indented(lines: Sequence[str], old: list[str]) -> list[Place]:
    """Find the lines at another indentation, the same for all of them."""
    if not any(line.strip() for line in old):
        return []
    first = next(number for number, line in enumerate(old) if line.strip())
    common, wanted = _dedented(old)
    telling = old[first].strip()
    places = []
    for number, line in enumerate(lines):
        start = number - first
        if line.strip() != telling or start < 0 or start + len(old) > len(lines):
            continue
        indentation, found = _dedented(lines[start : start + len(old)])
        if found == wanted:
            place = Place(start, start + len(old), Grade.INDENTATION, common, indentation)
            places.append(place)
    return places


def _dedented(lines: Sequence[str]) -> tuple[str, list[str]]:
    """Take off the indentation that all lines share, and blanks at line ends."""
    filled = [line for line in lines if line.strip()]
    common = _indentation(filled[0]) if filled else ""
    for line in filled[1:]:
        while not line.startswith(common):
            common = common[:-1]
    return common, [line[len(common) :].rstrip() if line.strip() else "" for line in lines]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
