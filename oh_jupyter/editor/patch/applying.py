"""Application of the hunks of a patch to one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from oh_jupyter.editor.patch import Hunk
from oh_jupyter.editor.patch.matching import (
    Ambiguous,
    Grade,
    Place,
    find_applied,
    is_applied_at,
    locate,
)
from oh_jupyter.editor.text.edits import not_encodable
from oh_jupyter.editor.text.fuzzy import closest, explain_absence
from oh_jupyter.editor.text.text_file import EncodeError, TextFile

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
    if place is not None and (hunk.identical or is_applied_at(lines, hunk, place)):
        result.remarks.append(f"{_words(name)}was applied before, at line {place.start + 1}")
        return None
    if place is None:
        applied = find_applied(lines, hunk)
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
        for start in _occurrences(text, old)
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


def _occurrences(text: str, wanted: str) -> list[int]:
    starts, at = [], text.find(wanted) if wanted.strip() else -1
    while at >= 0:
        starts.append(at)
        at = text.find(wanted, at + len(wanted))
    return starts


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
