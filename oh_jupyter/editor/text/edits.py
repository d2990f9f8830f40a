"""Text edits and the commands that compute them: from text to bytes and an excerpt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from oh_jupyter.editor.messages import (
    REVIEW,
    REVIEW_INSERTION,
    invalid,
    no_such_line,
    quoted,
    unchanged,
)
from oh_jupyter.editor.text.conflicts import check_lines, check_matches
from oh_jupyter.editor.text.text_file import EncodeError, TextFile, to_newlines
from oh_jupyter.errors import EditorParameterInvalidError, NoReplacementError
from oh_jupyter.text import plural

SNIPPET_LINES = 4
"""Lines shown before and after an edit."""

_MAX_LISTED = 100  # numbers in a message


@dataclass(frozen=True)
class Edit:
    """A computed edit, and the lines to show of it."""

    data: bytes
    offset: int
    line: int  # the line at the offset, counted from 1
    before: int
    after: int
    excerpt: str | None = None
    caption: str | None = None

    @property
    def first(self) -> int:
        """The first line to show, counted from 1."""
        return max(1, self.line - self.before)


def _find_unique(file: TextFile, old: str, new: str, path: Path) -> tuple[int, int]:
    """Return the offsets of the only occurrence of ``old``, or of ``old`` stripped."""
    target, first = _first(file, old, new, path)
    if file.text.find(target, first + max(1, len(target))) >= 0 or (not target and file.text):
        raise not_unique(target, _lines_of(file.text, occurrences(file.text, target)))
    return first, first + len(target)


def _find_all(
    file: TextFile, old: str, new: str, path: Path, expected: int | None
) -> list[tuple[int, int]]:
    """Return the offsets of every occurrence of ``old``; None expects any number."""
    target, _ = _first(file, old, new, path)
    if not target:
        raise invalid("old_str", target, "It is empty, so its occurrences cannot be counted.")
    starts = occurrences(file.text, target)
    if expected is not None and len(starts) != expected:
        lines = _lines_of(file.text, starts)
        raise unexpected_count(target, path, expected, len(starts), lines)
    return [(start, start + len(target)) for start in starts]


def not_unique(old: str, lines: Iterable[int], hint: str = "") -> NoReplacementError:
    """Return the error for a text that occurs more than once."""
    return NoReplacementError(
        f"No replacement was performed. Multiple occurrences of old_str `{quoted(old)}` in lines "
        f"{_listed(lines)}. Please ensure it is unique.{hint}"
    )


def unexpected_count(
    old: str, path: Path, expected: int, count: int, lines: Iterable[int]
) -> NoReplacementError:
    """Return the error for a text that does not occur as often as expected."""
    return NoReplacementError(
        f"No replacement was performed. Expected {plural(expected, 'occurrence')} of old_str "
        f"`{quoted(old)}` in {path}, found {count} in lines {_listed(lines)}."
    )


def _first(file: TextFile, old: str, new: str, path: Path) -> tuple[str, int]:
    """Find a text, or else the same text stripped; return it with its offset."""
    target = to_newlines(old)
    first = file.text.find(target)
    if first < 0:
        target = target.strip()
        first = file.text.find(target) if target else -1
    if first < 0:
        from oh_jupyter.editor.text.fuzzy import explain_absence

        raise NoReplacementError(
            f"No replacement was performed, old_str `{quoted(target)}` did not appear verbatim "
            f"in {path}." + explain_absence(file.text, to_newlines(old), to_newlines(new))
        )
    return target, first


def occurrences(text: str, target: str) -> list[int]:
    """Return the offsets of a text; for an empty one those of all lines."""
    if not target:
        return [0, *(match.end() for match in re.finditer("\n", text))]
    return [match.start() for match in re.finditer(re.escape(target), text)]


def _lines_of(text: str, offsets: Iterable[int]) -> Iterator[int]:
    """Yield the line number of each ascending offset."""
    line, counted = 1, 0
    for offset in offsets:
        line += text.count("\n", counted, offset)
        counted = offset
        yield line


def _listed(numbers: Iterable[int]) -> str:
    """List ascending numbers, each once, such as ``[1, 7]``."""
    unique = list(dict.fromkeys(numbers))
    if len(unique) <= _MAX_LISTED:
        return str(unique)
    return f"{str(unique[:_MAX_LISTED])[:-1]}, ... and {len(unique) - _MAX_LISTED} more]"


def _replace_ranges(file: TextFile, ranges: Sequence[tuple[int, int]], new: str) -> Edit:
    """Return the edit that replaces ascending ranges of the text, and shows the first."""
    try:
        data = file.replace_many((start, end, new) for start, end in ranges)
    except EncodeError as error:
        raise not_encodable("new_str", new, error) from None
    if data == file.data:
        raise unchanged(new)
    start, _ = ranges[0]
    line = file.text.count("\n", 0, start) + 1
    return Edit(data, start, line, SNIPPET_LINES - 1, SNIPPET_LINES + new.count("\n"))


def _insert_after(file: TextFile, line: int, new: str) -> Edit:
    """Compute ``insert``; an unterminated last line gets a newline first."""
    count = file.line_count
    if not 0 <= line <= count:
        raise no_such_line(line, count)
    at = file.offset_of_line(line + 1)
    unterminated = line == count and file.text != "" and not file.text.endswith("\n")
    data = encoded(file, at, at, "\n" * unterminated + new + "\n", "new_str")
    after = SNIPPET_LINES + new.count("\n")
    return Edit(data, at + unterminated, line + 1, SNIPPET_LINES, after)


def write_lines(file: TextFile, content: str, start: int, end: int) -> Edit:
    """Compute ``write``; content without a final newline gets one."""
    data, at, line = write_range(file, content, start, end)
    after = SNIPPET_LINES + content.removesuffix("\n").count("\n") + bool(content) - 1
    return Edit(data, at, line, SNIPPET_LINES - 1, after)


def write_range(file: TextFile, content: str, start: int, end: int) -> tuple[bytes, int, int]:
    """Return the bytes of ``write``, and the offset and the line (from 1) where it starts."""
    new = content if content.endswith("\n") or not content else content + "\n"
    if start <= 0 and end == -1:
        return encoded(file, 0, len(file.text), new, "content"), 0, 1
    count = file.line_count
    first = min(max(start, 0), count)
    last = count if end == -1 else min(max(end, first), count)
    at, to = file.offset_of_line(first + 1), file.offset_of_line(last + 1)
    unterminated = first == count and file.text != "" and not file.text.endswith("\n")
    data = encoded(file, at, to, "\n" * (unterminated and bool(new)) + new, "content")
    return data, at, first + 1 - unterminated


def encoded(file: TextFile, start: int, end: int, new: str, parameter: str) -> bytes:
    """Return the bytes of the file with a range replaced."""
    try:
        return file.replace(start, end, new)
    except EncodeError as error:
        raise not_encodable(parameter, new, error) from None


def not_encodable(parameter: str, value: str, error: EncodeError) -> EditorParameterInvalidError:
    """Return the error for text that the encoding of a file cannot represent."""
    return invalid(
        parameter,
        ascii(value),
        f"The file is in {error.encoding}, which has no character {error.character!a}. "
        "Use other characters, or convert the file to UTF-8 first.",
    )


Compute = Callable[[TextFile, str | None], tuple[Edit, str]]
"""Takes the file and, if it differs, the text last shown; returns the edit and a note."""


@dataclass(frozen=True)
class NewFile:
    """Validated command ``create``."""

    path: Path
    text: str
    name: str = "create"


@dataclass(frozen=True)
class EditCommand:
    """Validated command on one file."""

    name: str
    path: Path
    compute: Compute
    caption: str
    review: str
    if_missing: NewFile | None = None  # created if the file does not exist; None raises an error

    def with_compute(self, compute: Compute) -> EditCommand:
        """Return a copy with another function."""
        return replace(self, compute=compute)


def str_replace(
    path: Path, old: str, new: str, *, replace_all: bool = False, expected: int | None = None
) -> EditCommand:
    """Return the command that replaces a text."""
    if expected is not None and (
        not isinstance(expected, int) or isinstance(expected, bool) or expected < 1
    ):
        raise invalid("expected_replacements", expected, "It should be a positive integer.")
    if old == new:
        raise unchanged(new)

    def compute_one(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        ranges = [_find_unique(file, old, new, path)]
        note = check_matches(path, shown, file.text, ranges) if shown else ""
        return _replace_ranges(file, ranges, new), note

    def compute_all(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        ranges = _find_all(file, old, new, path, expected)
        note = check_matches(path, shown, file.text, ranges) if shown else ""
        lines = _listed(_lines_of(file.text, [start for start, _ in ranges]))
        count = f"\n{plural(len(ranges), 'occurrence')} replaced, in lines {lines}."
        return _replace_ranges(file, ranges, new), count + note

    compute = compute_all if replace_all or expected is not None else compute_one
    return EditCommand("str_replace", path, compute, f"a snippet of {path}", REVIEW)


def insert(path: Path, line: int, text: str) -> EditCommand:
    """Return the command that inserts text after a line; 0 is the start."""
    if not isinstance(line, int) or isinstance(line, bool):
        raise invalid("insert_line", line, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        edit = _insert_after(file, line, text)
        note = check_lines(path, shown, file.text, line) if shown else ""
        return edit, note

    return EditCommand("insert", path, compute, "a snippet of the edited file", REVIEW_INSERTION)


def write(path: Path, text: str, start: int, end: int) -> EditCommand:
    """Return the command that replaces lines, counted from 0; ``end`` -1 is the end."""
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid(name, value, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        line = file.line_count if end == -1 else end
        note = check_lines(path, shown, file.text, line) if shown else ""
        return write_lines(file, text, start, end), note

    new = NewFile(path, text if text.endswith("\n") or not text else text + "\n")
    return EditCommand("write", path, compute, f"a snippet of {path}", REVIEW, if_missing=new)
