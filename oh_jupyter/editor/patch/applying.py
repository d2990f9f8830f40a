"""Matching of a patch's hunks with a file, by ever looser grades, and their application."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, pairwise

from oh_jupyter.editor.patch import PatchHunk
from oh_jupyter.editor.text.edits import not_encodable, occurrences
from oh_jupyter.editor.text.fuzzy import ASCII, closest, explain_absence
from oh_jupyter.editor.text.text_file import EncodeError, TextFile


class _Grade(Enum):
    """Grade of a match between hunk and file."""

    EXACT = "exactly"
    BLANKS = "except for blanks at line ends"
    INDENTATION = "except for the indentation"
    UNICODE = "except for the kind of quotes, dashes or spaces"


@dataclass(frozen=True)
class _Match:
    """Range of lines that a hunk matches."""

    start: int  # the first line, counted from 0
    end: int
    grade: _Grade = _Grade.EXACT
    removed: str = ""
    added: str = ""


class _Ambiguous(Exception):
    def __init__(self, starts: Sequence[int]) -> None:
        super().__init__("several places")
        self.starts = starts


_NORMAL_FORMS: tuple[tuple[Callable[[str], str], _Grade], ...] = (
    (str, _Grade.EXACT),
    (str.rstrip, _Grade.BLANKS),
)


def _locate(lines: Sequence[str], hunk: PatchHunk) -> _Match | None:
    """Return the only match of a hunk, or None; raise _Ambiguous for several."""
    if not hunk.old:
        return _locate_insertion(lines, hunk)
    matches = (
        _matching(lines, hunk.old)
        or _indented(lines, hunk.old)
        or _equal_runs(lines, hunk.old, lambda s: s.translate(ASCII).rstrip(), _Grade.UNICODE)
    )
    return _only(lines, matches, hunk) if matches else None


def _locate_applied(lines: Sequence[str], hunk: PatchHunk) -> int | None:
    """Return the line, from 0, where a hunk was already applied; None if unclear."""
    if not any(len(re.findall(r"\w", line)) >= 2 for line in hunk.new):
        return None  # a closing bracket is everywhere
    matches = _matching(lines, hunk.new)
    return matches[0].start if len(matches) == 1 else None


def _is_applied_at(lines: Sequence[str], hunk: PatchHunk, match: _Match) -> bool:
    """Return whether lines that a hunk adds before or after its context are already there."""
    old, new = hunk.old, hunk.new
    if len(new) <= len(old) or not any(line.strip() for line in new):
        return False
    start = match.end - len(new)
    below = new[: len(old)] == old and list(lines[match.start : match.start + len(new)]) == new
    above = new[len(new) - len(old) :] == old and start >= 0
    return below or (above and list(lines[start : match.end]) == new)


def _locate_insertion(lines: Sequence[str], hunk: PatchHunk) -> _Match | None:
    if not hunk.anchors:
        return _Match(len(lines), len(lines)) if hunk.at_end or not lines else None
    scopes = _scopes(lines, hunk.anchors)
    if len(scopes) > 1:
        raise _Ambiguous([start for start, _ in scopes])
    return _Match(scopes[0][0] + 1, scopes[0][0] + 1) if scopes else None


def _only(lines: Sequence[str], matches: list[_Match], hunk: PatchHunk) -> _Match:
    """Choose a match by the other properties of the hunk; raise _Ambiguous if several remain."""
    if hunk.at_end:
        matches = [match for match in matches if match.end == len(lines)] or matches
    if len(matches) > 1 and hunk.anchors:
        scopes = _scopes(lines, hunk.anchors)
        inside = [m for m in matches if any(s < m.end and m.end <= e for s, e in scopes)]
        after = [m for m in matches if any(s < m.end for s, _ in scopes)]
        matches = inside or after or matches
    if len(matches) > 1 and hunk.hint is not None:
        matches = [match for match in matches if match.start == hunk.hint - 1] or matches
    if len(matches) > 1:
        raise _Ambiguous([match.start for match in matches])
    return matches[0]


def _scopes(lines: Sequence[str], anchors: Sequence[str]) -> list[tuple[int, int]]:
    """Find the lines named by nested anchors, and the ends of their indented blocks."""
    scopes = [(-1, len(lines))]
    for anchor in map(str.strip, anchors):
        candidates = [(n, end) for start, end in scopes for n in range(start + 1, end)]
        exact = [(n, end) for n, end in candidates if lines[n].strip() == anchor]
        scopes = [
            (n, _end_of_scope(lines, n, end))
            for n, end in exact or candidates
            if exact or lines[n].strip().startswith(anchor)
        ]
    return scopes


def _end_of_scope(lines: Sequence[str], start: int, limit: int) -> int:
    width = len(_indentation(lines[start]))
    for number in range(start + 1, limit):
        if lines[number].strip() and len(_indentation(lines[number])) <= width:
            # the closing bracket of the first line belongs to the scope
            return number + (lines[number].lstrip()[0] in ")]}")
    return limit


def _matching(lines: Sequence[str], old: list[str]) -> list[_Match]:
    """Find lines that are equal, or equal but for blanks at line ends."""
    for normal, grade in _NORMAL_FORMS:
        matches = _equal_runs(lines, old, normal, grade)
        if matches:
            return matches
    return []


def _equal_runs(
    lines: Sequence[str], old: list[str], normal: Callable[[str], str], grade: _Grade
) -> list[_Match]:
    target = [normal(line) for line in old]
    current = lines if normal is str else [normal(line) for line in lines]
    size = len(target)
    return [
        _Match(start, start + size, grade)
        for start in range(len(current) - size + 1)
        if current[start] == target[0] and list(current[start : start + size]) == target
    ]


def _indented(lines: Sequence[str], old: list[str]) -> list[_Match]:
    """Find the lines at another common indentation."""
    first = next((number for number, line in enumerate(old) if line.strip()), None)
    if first is None:
        return []
    common, target = _dedented(old)
    first_text = old[first].strip()
    matches = []
    for number, line in enumerate(lines):
        start = number - first
        if line.strip() != first_text or start < 0 or start + len(old) > len(lines):
            continue
        indentation, candidate = _dedented(lines[start : start + len(old)])
        if candidate == target:
            end = start + len(old)
            matches.append(_Match(start, end, _Grade.INDENTATION, common, indentation))
    return matches


def _dedented(lines: Sequence[str]) -> tuple[str, list[str]]:
    """Remove the common indentation, and blanks at line ends."""
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
_MIN_SIMILARITY = 0.9  # of lines that the hunk probably refers to


@dataclass
class Patched:
    """Result of the hunks for one file."""

    data: bytes
    applied: int = 0
    remarks: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def apply_hunks(file: TextFile, hunks: Sequence[PatchHunk]) -> Patched:
    """Apply hunks, all of which refer to the current file."""
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
        match = _match(file, lines, hunk, name, result)
        if match is None:
            continue
        result.applied += 1
        newline = newline if hunk.newline is None else hunk.newline
        if isinstance(match, tuple):
            replacements.append((*match, "\n".join(hunk.new)))
        else:
            replacements += _replacements(lines, starts, terminated, hunk, match)
    if not result.errors:
        result.data = _replaced(file, sorted(replacements), newline, result)
    return result


def _match(
    file: TextFile, lines: list[str], hunk: PatchHunk, name: str, result: Patched
) -> _Match | tuple[int, int] | None:
    """Find the match of a hunk; add remarks and errors to the result."""
    label, subject = (f"{name}: ", f"{name} ") if name else ("", "")
    try:
        match = _locate(lines, hunk)
    except _Ambiguous as several:
        numbers = [str(start + 1) for start in several.starts]
        more = ", ..." if len(numbers) > _MAX_LISTED else ""
        result.errors.append(
            f"{label}its lines occur in several places, starting at lines "
            f"{', '.join(numbers[:_MAX_LISTED])}{more}. Add surrounding lines that make the place "
            "unique."
        )
        return None
    if match is None and hunk.inline:
        within = _within_lines(file.text, hunk, label, result)
        if within is not None or result.errors:
            return within
    is_identical = hunk.old == hunk.new and hunk.newline is None
    applied = None
    if match is None:
        applied = _locate_applied(lines, hunk)
        if applied is None or _is_elsewhere(lines, hunk, applied):
            result.errors.append(f"{label}{_absence(file.text, hunk)}")
            return None
    elif is_identical or _is_applied_at(lines, hunk, match):
        applied = match.start
    if match is None or applied is not None:
        result.remarks.append(f"{subject}was applied before, at line {(applied or 0) + 1}")
        return None
    error = _indentation_error(hunk, match)
    if error:
        result.errors.append(label + error)
        return None
    if match.grade is not _Grade.EXACT:
        where = f"lines {match.start + 1}-{match.end}"
        result.remarks.append(f"{subject}matched {where} {match.grade.value}")
    return match


def _is_elsewhere(lines: list[str], hunk: PatchHunk, applied: int) -> bool:
    """Return whether lines very similar to the old ones are in another place than the new ones."""
    match = closest("\n".join(lines), hunk.old) if hunk.old else None
    if match is None:
        return False
    start, similarity = match
    overlaps = start < applied + len(hunk.new) and applied < start + len(hunk.old)
    return similarity >= _MIN_SIMILARITY and not overlaps


def _absence(text: str, hunk: PatchHunk) -> str:
    if not hunk.old:
        return "it only adds lines, and nothing says where. Add a line that is in the file."
    old, new = "\n".join(hunk.old), "\n".join(hunk.new)
    return f"its lines are not in the file:\n{old}" + (
        explain_absence(text, old, new, name="patch") or "\nNothing in the file is similar."
    )


def _within_lines(
    text: str, hunk: PatchHunk, label: str, result: Patched
) -> tuple[int, int] | None:
    """Find the only occurrence inside of lines that starts and ends at word boundaries."""
    old = "\n".join(hunk.old)
    starts = [
        start
        for start in (occurrences(text, old) if old.strip() else ())
        if not _is_within_word(text[start - 1 : start] + old[:1])
        and not _is_within_word(old[-1:] + text[start + len(old) : start + len(old) + 1])
    ]
    if len(starts) > 1:
        numbers = sorted({text.count("\n", 0, start) + 1 for start in starts})
        result.errors.append(
            f"{label}its text occurs several times, in lines {numbers[:_MAX_LISTED]}. Search for "
            "more text, such as whole lines, that occurs once."
        )
    return (starts[0], starts[0] + len(old)) if len(starts) == 1 else None


def _is_within_word(pair: str) -> bool:
    return len(pair) == 2 and all(char.isalnum() or char == "_" for char in pair)


def _indentation_error(hunk: PatchHunk, match: _Match) -> str:
    """Return an error if a new line cannot get the indentation of the file."""
    for kind, line in hunk.lines:
        if kind == "+" and line.strip() and not line.startswith(match.removed):
            return (
                f"it matches lines {match.start + 1}-{match.end} only at another indentation, and "
                f"its new line {line.strip()!r} is indented less than all old ones. Use the "
                "indentation of the file."
            )
    return ""


def _replacements(
    lines: list[str], starts: list[int], terminated: bool, hunk: PatchHunk, match: _Match
) -> list[_Replacement]:
    """Turn a hunk into replacements in the text; unchanged lines are kept byte for byte."""
    runs: list[tuple[int, int, list[str]]] = []
    at = match.start
    unchanged = True
    for kind, text in hunk.lines:
        if kind == " ":
            at += 1
            unchanged = True
            continue
        if unchanged:
            runs.append((at, at, []))
            unchanged = False
        first, _, new = runs[-1]
        if kind == "-":
            at += 1
            runs[-1] = (first, at, new)
        else:
            new.append(match.added + text[len(match.removed) :] if text.strip() else text)
    replacements = []
    for first, last, new in runs:
        text = "".join(f"{line}\n" for line in new)
        if last == len(lines) and lines and not terminated and text:
            text = text if hunk.newline else text.removesuffix("\n")
            text = "\n" * (first == len(lines)) + text
        replacements.append((starts[first], starts[last], text))
    return replacements


def _replaced(
    file: TextFile, replacements: list[_Replacement], newline: bool | None, result: Patched
) -> bytes:
    for (_, end, _), (start, _, _) in pairwise(replacements):
        if start < end:
            line = file.text.count("\n", 0, start) + 1
            result.errors.append(f"two hunks change the same line {line}")
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
