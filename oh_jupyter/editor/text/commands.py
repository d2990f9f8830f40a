"""Editor commands on text, as functions that compute an edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from oh_jupyter.editor.messages import REVIEW, REVIEW_INSERTION, invalid, plural
from oh_jupyter.editor.text import conflicts, edits
from oh_jupyter.editor.text.text_file import TextFile

__all__ = ["Command", "Compute", "NewFile", "insert", "str_replace", "write"]

Compute = Callable[[TextFile, str | None], tuple[edits.Edit, str]]
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
        raise invalid(
            "new_str",
            new,
            "No replacement was performed. `new_str` and `old_str` must be different.",
        )

    def compute_one(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
        start, end = edits.find_unique(file, old, new, path)
        note = conflicts.check_matches(path, shown, file.text, [(start, end)]) if shown else ""
        return edits.replace_range(file, start, end, new), note

    def compute_all(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
        places = edits.find_all(file, old, new, path, expected)
        note = conflicts.check_matches(path, shown, file.text, places) if shown else ""
        lines = edits.line_numbers(file.text, [start for start, _ in places])
        count = f"\n{plural(len(places), 'occurrence')} replaced, in lines {lines}."
        return edits.replace_ranges(file, places, new), count + note

    compute = compute_all if replace_all or expected is not None else compute_one
    return Command("str_replace", path, compute, f"a snippet of {path}", REVIEW)


def insert(path: Path, line: int, text: str) -> Command:
    """Command that inserts text after a line; 0 is the start."""
    if not isinstance(line, int) or isinstance(line, bool):
        raise invalid("insert_line", line, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
        edit = edits.insert_after(file, line, text)
        note = conflicts.check_lines(path, shown, file.text, line) if shown else ""
        return edit, note

    return Command("insert", path, compute, "a snippet of the edited file", REVIEW_INSERTION)


def write(path: Path, text: str, start: int, end: int) -> Command:
    """Command that replaces lines, counted from 0; ``end`` -1 is the end."""
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid(name, value, "It should be an integer.")

    def compute(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
        line = file.line_count if end == -1 else end
        note = conflicts.check_lines(path, shown, file.text, line) if shown else ""
        return edits.write_lines(file, text, start, end), note

    new = NewFile(path, text if text.endswith("\n") or not text else text + "\n")
    return Command("write", path, compute, f"a snippet of {path}", REVIEW, if_missing=new)
