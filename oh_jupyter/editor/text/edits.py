"""Text edits and the commands that compute them: text in, bytes and the lines to show out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from oh_jupyter.editor.messages import (
    REVIEW,
    REVIEW_INSERTION,
    invalid,
    no_such_line,
    plural,
    quoted,
    unchanged,
)
from oh_jupyter.editor.text.conflicts import check_lines, check_matches
from oh_jupyter.editor.text.text_file import EncodeError, TextFile, to_newlines
from oh_jupyter.errors import EditorParameterInvalidError, NoReplacementError

SNIPPET_LINES = 4
"""Lines that are shown before and after an edit."""

_MAX_LISTED = 100  # line numbers in a message


@dataclass(frozen=True)
class Edit:
    """An edit that is ready to be written."""

    data: bytes
    offset: int
    line: int  # the line of that place, counted from 1
    before: int
    after: int
    excerpt: str | None = None
    caption: str | None = None

    @property
    def first(self) -> int:
        """The first line to show, counted from 1."""
        return max(1, self.line - self.before)


def _find_unique(file: TextFile, old: str, new: str, path: Path) -> tuple[int, int]:
    """Offsets of the one place of ``old``, or of ``old`` without the blanks around it."""
    wanted, first = _first(file, old, new, path)
    if file.text.find(wanted, first + max(1, len(wanted))) >= 0 or (not wanted and file.text):
        lines = _line_numbers(file.text, occurrences(file.text, wanted))
        raise NoReplacementError(
            f"No replacement was performed. Multiple occurrences of old_str `{quoted(wanted)}` in "
            f"lines {lines}. Please ensure it is unique."
        )
    return first, first + len(wanted)


def _find_all(
    file: TextFile, old: str, new: str, path: Path, expected: int | None
) -> list[tuple[int, int]]:
    """Offsets of every place of ``old``; ``expected`` None allows any number."""
    wanted, _ = _first(file, old, new, path)
    if not wanted:
        raise invalid("old_str", wanted, "It is empty: there is no end to its occurrences.")
    starts = occurrences(file.text, wanted)
    if expected is not None and len(starts) != expected:
        raise NoReplacementError(
            f"No replacement was performed. Expected {plural(expected, 'occurrence')} of old_str "
            f"`{quoted(wanted)}` in {path}, found {len(starts)} in lines "
            f"{_line_numbers(file.text, starts)}."
        )
    return [(start, start + len(wanted)) for start in starts]


def _first(file: TextFile, old: str, new: str, path: Path) -> tuple[str, int]:
    """Find a text, or if it is nowhere the same without the blanks around it."""
    wanted = to_newlines(old)
    first = file.text.find(wanted)
    if first < 0:
        wanted = wanted.strip()
        first = file.text.find(wanted) if wanted else -1
    if first < 0:
        from oh_jupyter.editor.text.fuzzy import explain_absence

        raise NoReplacementError(
            f"No replacement was performed, old_str `{quoted(wanted)}` did not appear verbatim "
            f"in {path}." + explain_absence(file.text, to_newlines(old), to_newlines(new))
        )
    return wanted, first


def occurrences(text: str, wanted: str) -> list[int]:
    """Offsets of a text; of an empty one those of all lines."""
    if not wanted:
        return [0, *(match.end() for match in re.finditer("\n", text))]
    return [match.start() for match in re.finditer(re.escape(wanted), text)]


def _line_numbers(text: str, offsets: Iterable[int]) -> str:
    """Lines of ascending offsets, each once, such as ``[1, 7]``."""
    numbers: list[int] = []
    line, counted = 1, 0
    for offset in offsets:
        line += text.count("\n", counted, offset)
        counted = offset
        if not numbers or numbers[-1] != line:
            numbers.append(line)
    if len(numbers) <= _MAX_LISTED:
        return str(numbers)
    return f"{str(numbers[:_MAX_LISTED])[:-1]}, ... and {len(numbers) - _MAX_LISTED} more]"


def _replace_ranges(file: TextFile, places: Sequence[tuple[int, int]], new: str) -> Edit:
    """Edit that replaces ascending ranges of the text, and shows the first."""
    try:
        data = file.replace_many((start, end, new) for start, end in places)
    except EncodeError as error:
        raise not_encodable("new_str", new, error) from None
    if data == file.data:
        raise unchanged(new)
    start, _ = places[0]
    line = file.text.count("\n", 0, start) + 1
    return Edit(data, start, line, SNIPPET_LINES - 1, SNIPPET_LINES + new.count("\n"))


def _insert_after(file: TextFile, line: int, new: str) -> Edit:
    """Compute ``insert``; a last line without a newline gets one first."""
    count = file.line_count
    if not 0 <= line <= count:
        raise no_such_line(line, count)
    at = file.offset_of_line(line + 1)
    unterminated = line == count and file.text != "" and not file.text.endswith("\n")
    data = encoded(file, at, at, "\n" * unterminated + new + "\n", "new_str")
    after = SNIPPET_LINES + new.count("\n")
    return Edit(data, at + unterminated, line + 1, SNIPPET_LINES, after)


def write_lines(file: TextFile, content: str, start: int, end: int) -> Edit:
    """Compute ``write``; content without a newline at its end gets one."""
    data, at, line = write_range(file, content, start, end)
    after = SNIPPET_LINES + content.removesuffix("\n").count("\n") + bool(content) - 1
    return Edit(data, at, line, SNIPPET_LINES - 1, after)


def write_range(file: TextFile, content: str, start: int, end: int) -> tuple[bytes, int, int]:
    """Bytes of ``write``, and the offset and the line, counted from 1, where it begins."""
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
    """Bytes of the file with other text in the place of a range."""
    try:
        return file.replace(start, end, new)
    except EncodeError as error:
        raise not_encodable(parameter, new, error) from None


def not_encodable(parameter: str, value: str, error: EncodeError) -> EditorParameterInvalidError:
    """Error of a text that does not exist in the encoding of a file."""
    return invalid(
        parameter,
        ascii(value),
        f"The file is in {error.encoding}, which has no character {error.character!a}. "
        "Use other characters, or convert the file to UTF-8 first.",
    )


Compute = Callable[[TextFile, str | None], tuple[Edit, str]]
"""Takes the file and, if it is another now, the text that was shown last; returns the edit
and a note to append to what is said."""


@dataclass(frozen=True)
class NewFile:
    """Validated command ``create``."""

    path: Path
    text: str
    name: str = "create"


@dataclass(frozen=True)
class Command:
    """Validated command on one file."""

    name: str
    path: Path
    compute: Compute
    caption: str
    review: str
    if_missing: NewFile | None = None  # what to create if the file is not there; None to refuse

    def with_compute(self, compute: Compute) -> Command:
        """Copy with another function that computes the edit."""
        return replace(self, compute=compute)


def str_replace(
    path: Path, old: str, new: str, *, replace_all: bool = False, expected: int | None = None
) -> Command:
    """Command that replaces a text by another."""
    if expected is not None and (
        not isinstance(expected, int) or isinstance(expected, bool) or expected < 1
    ):
        raise invalid("expected_replacements", expected, "It should be a positive integer.")
    if old == new:
        raise unchanged(new)

    def compute_one(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        places = [_find_unique(file, old, new, path)]
        note = check_matches(path, shown, file.text, places) if shown else ""
        return _replace_ranges(file, places, new), note

    def compute_all(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        places = _find_all(file, old, new, path, expected)
        note = check_matches(path, shown, file.text, places) if shown else ""
        lines = _line_numbers(file.text, [start for start, _ in places])
        count = f"\n{plural(len(places), 'occurrence')} replaced, in lines {lines}."
        return _replace_ranges(file, places, new), count + note

    compute = compute_all if replace_all or expected is not None else compute_one
    return Command("str_replace", path, compute, f"a snippet of {path}", REVIEW)


def insert(path: Path, line: int, text: str) -> Command:
    """Command that inserts text after a line; 0 is the start."""
    if not isinstance(line, int) or isinstance(line, bool):
        raise invalid("insert_line", line, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        edit = _insert_after(file, line, text)
        note = check_lines(path, shown, file.text, line) if shown else ""
        return edit, note

    return Command("insert", path, compute, "a snippet of the edited file", REVIEW_INSERTION)


def write(path: Path, text: str, start: int, end: int) -> Command:
    """Command that replaces lines, counted from 0; ``end`` -1 is the end."""
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid(name, value, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[Edit, str]:
        line = file.line_count if end == -1 else end
        note = check_lines(path, shown, file.text, line) if shown else ""
        return write_lines(file, text, start, end), note

    new = NewFile(path, text if text.endswith("\n") or not text else text + "\n")
    return Command("write", path, compute, f"a snippet of {path}", REVIEW, if_missing=new)
