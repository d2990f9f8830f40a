"""Where the hunks of a patch belong in a file, by ever looser grades, and their application."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, pairwise

from oh_jupyter.editor.patch import Hunk
from oh_jupyter.editor.text.edits import not_encodable, occurrences
from oh_jupyter.editor.text.fuzzy import ASCII, closest, explain_absence
from oh_jupyter.editor.text.text_file import EncodeError, TextFile


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


def _find_applied(lines: Sequence[str], hunk: Hunk) -> int | None:
    """First line, from 0, of the place where a hunk was applied before; None if unclear."""
    new = hunk.new
    if not any(len(re.findall(r"\w", line)) >= 2 for line in new):
        return None  # a closing bracket is everywhere
    places = _exact(lines, new) or _without_trailing_blanks(lines, new)
    return places[0].start if len(places) == 1 else None


def _is_applied_at(lines: Sequence[str], hunk: Hunk, place: Place) -> bool:
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


_Replacement = tuple[int, int, str]
_MAX_LISTED = 20
_MIN_LIKENESS = 0.9  # from here on lines are those that were meant


@dataclass
class Patched:
    """Result of the hunks of a patch for one file."""

    data: bytes
    applied: int = 0
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def apply_hunks(file: TextFile, hunks: Sequence[Hunk]) -> Patched:
    """Apply hunks, all of which refer to the file as it is."""
    result = Patched(file.data)
    lines = file.text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    terminated = lines[-1] == ""
    if terminated:
        lines.pop()
    starts = [*starts[: len(lines)], len(file.text)]
    replacements: list[_Replacement] = []
    newline: bool | None = None
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number}" if len(hunks) > 1 else ""
        place = _place_of(file, lines, hunk, name, result)
        if place is None:
            continue
        result.applied += 1
        newline = newline if hunk.newline is None else hunk.newline
        if isinstance(place, tuple):
            replacements.append((*place, "\n".join(hunk.new)))
        else:
            replacements += _replacements(lines, starts, terminated, hunk, place)
    if not result.problems:
        result.data = _replaced(file, sorted(replacements), newline, result)
    return result


def _place_of(
    file: TextFile, lines: list[str], hunk: Hunk, name: str, result: Patched
) -> Place | tuple[int, int] | None:
    """Find the place of a hunk, and note what is to say about it."""
    try:
        place = locate(lines, hunk)
    except Ambiguous as several:
        numbers = [start + 1 for start in several.starts]
        more = ", ..." if len(numbers) > _MAX_LISTED else ""
        result.problems.append(
            f"{_label(name)}its lines are in several places, which begin at lines "
            f"{', '.join(map(str, numbers[:_MAX_LISTED]))}{more}. Add lines around them that tell "
            "which is meant."
        )
        return None
    if place is None and hunk.inline:
        within = _within_lines(file.text, hunk, name, result)
        if within is not None or result.problems:
            return within
    if place is not None and (hunk.identical or _is_applied_at(lines, hunk, place)):
        result.remarks.append(f"{_words(name)}was applied before, at line {place.start + 1}")
        return None
    if place is None:
        applied = _find_applied(lines, hunk)
        if applied is not None and not _is_elsewhere(lines, hunk, applied):
            result.remarks.append(f"{_words(name)}was applied before, at line {applied + 1}")
        else:
            result.problems.append(f"{_label(name)}{_absence(file.text, hunk)}")
        return None
    problem = _misfit(hunk, place)
    if problem:
        result.problems.append(f"{_label(name)}{problem}")
        return None
    if place.grade is not Grade.EXACT:
        where = f"lines {place.start + 1}-{place.end}"
        result.remarks.append(f"{_words(name)}matched {where} {place.grade.value}")
    return place


def _is_elsewhere(lines: list[str], hunk: Hunk, applied: int) -> bool:
    """Whether nearly the old lines are in another place than the new ones: those were meant."""
    found = closest(lines, hunk.old) if hunk.old else None
    if found is None:
        return False
    start, likeness = found
    overlaps = start < applied + len(hunk.new) and applied < start + len(hunk.old)
    return likeness >= _MIN_LIKENESS and not overlaps


def _label(name: str) -> str:
    return f"{name}: " if name else ""


def _words(name: str) -> str:
    return f"{name} " if name else ""


def _absence(text: str, hunk: Hunk) -> str:
    if not hunk.old:
        return "it only adds lines, and nothing tells where. Add a line of what is there."
    old, new = "\n".join(hunk.old), "\n".join(hunk.new)
    return f"its lines are not in the file:\n{old}" + (
        explain_absence(text, old, new, name="patch") or "\nNothing in the file is similar."
    )


def _within_lines(text: str, hunk: Hunk, name: str, result: Patched) -> tuple[int, int] | None:
    """Find the one place inside of lines, where it does not begin or end within a word."""
    old = "\n".join(hunk.old)
    found = [
        start
        for start in (occurrences(text, old) if old.strip() else ())
        if not _joins(text[start - 1 : start] + old[:1])
        and not _joins(old[-1:] + text[start + len(old) : start + len(old) + 1])
    ]
    if len(found) > 1:
        numbers = sorted({text.count("\n", 0, start) + 1 for start in found})
        result.problems.append(
            f"{_label(name)}its text is several times in lines {numbers[:_MAX_LISTED]}. Search for "
            "more, such as whole lines, that is there once."
        )
    return (found[0], found[0] + len(old)) if len(found) == 1 else None


def _joins(pair: str) -> bool:
    return len(pair) == 2 and all(sign.isalnum() or sign == "_" for sign in pair)


def _misfit(hunk: Hunk, place: Place) -> str:
    """Say which new line cannot be given the indentation of the file."""
    for kind, line in hunk.lines:
        if kind == "+" and line.strip() and not line.startswith(place.removed):
            return (
                f"it matches lines {place.start + 1}-{place.end} only at another indentation, and "
                f"its new line {line.strip()!r} is indented less than all the old ones. Write the "
                "lines as they are in the file."
            )
    return ""


def _replacements(
    lines: list[str], starts: list[int], terminated: bool, hunk: Hunk, place: Place
) -> list[_Replacement]:
    """Turn a hunk into replacements in the text; lines that stay keep every sign of theirs."""
    runs: list[tuple[int, int, list[str]]] = []
    at = place.start
    staying = True
    for kind, text in hunk.lines:
        if kind == " ":
            at += 1
            staying = True
            continue
        if staying:
            runs.append((at, at, []))
            staying = False
        first, _, new = runs[-1]
        if kind == "-":
            at += 1
            runs[-1] = (first, at, new)
        else:
            new.append(place.added + text[len(place.removed) :] if text.strip() else text)
    keeps = not terminated and not hunk.newline  # goes on without a newline at its end
    return [_in_text(starts, len(lines), terminated, keeps, *run) for run in runs]


def _in_text(
    starts: list[int],
    count: int,
    terminated: bool,
    keeps: bool,
    first: int,
    last: int,
    new: list[str],
) -> _Replacement:
    text = "".join(f"{line}\n" for line in new)
    if last == count and count and not terminated and text:
        text = "\n" * (first == count) + (text.removesuffix("\n") if keeps else text)
    return starts[first], starts[last], text


def _replaced(
    file: TextFile, replacements: list[_Replacement], newline: bool | None, result: Patched
) -> bytes:
    for (_, end, _), (start, _, _) in pairwise(replacements):
        if start < end:
            line = file.text.count("\n", 0, start) + 1
            result.problems.append(f"two hunks change the same line {line}")
            return file.data
    try:
        data = file.replace_many(replacements)
        if newline is None:
            return data
        new = TextFile(data, file.encoding)
        size = len(new.text)
        if newline and new.text and not new.text.endswith("\n"):
            return new.replace(size, size, "\n")
        if not newline and new.text.endswith("\n"):
            return new.replace(size - 1, size, "")
        return data
    except EncodeError as error:
        raise not_encodable("content", "", error) from None
