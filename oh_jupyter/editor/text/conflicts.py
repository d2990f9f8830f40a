"""Detection of conflicts with changes that others made since a file was last shown.

An edit of lines that are as shown succeeds, with a note. Otherwise the error shows the
difference, and the same command succeeds if it is repeated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from oh_jupyter.editor.text.line_diff import Change, changed_lines, unified_diff
from oh_jupyter.errors import FileChangedError
from oh_jupyter.text import shorten

_MAX_DIFF_CHARS = 4000
_MAX_LISTED = 10  # changes in a note


def check_matches(path: Path, shown: str, text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Check replacements of matched text, at ascending ranges of offsets.

    Text that was not shown is no conflict: the caller knows it from elsewhere.
    """
    changes = changed_lines(shown, text)
    ends = [last for _, _, _, last in changes]
    line = counted = 0
    for start, end in ranges:
        line += text.count("\n", counted, start)
        counted = start
        last = line + text.count("\n", start, max(start, end - 1))
        at = bisect_right(ends, line)  # the first change that does not end above
        touched = at < len(changes) and changes[at][2] <= last
        if touched and text[start:end] in shown:
            raise changed_error(path, shown, text)
    return _note(path, changes)


def check_lines(path: Path, shown: str, text: str, line: int) -> str:
    """Check an edit by line number."""
    changes = changed_lines(shown, text)
    if any(i1 < line or (i1 == line and i1 == i2) for i1, i2, _, _ in changes[:1]):
        raise changed_error(path, shown, text)
    return _note(path, changes)


def check_change(path: Path, shown: str, text: str, new: str) -> str:
    """Check an edit of any number of places."""
    changes = changed_lines(shown, text)
    ends = [last for _, _, _, last in changes]
    lines = text.split("\n")
    for first, last, _, _ in changed_lines(text, new):
        at = bisect_left(ends, first)  # the first change that does not end above
        touched = at < len(changes) and changes[at][2] <= last
        if touched and "\n".join(lines[first:last]) in shown:
            raise changed_error(path, shown, text)
    return _note(path, changes)


def changed_error(path: Path, shown: str, text: str) -> FileChangedError:
    """Return the error for a conflict, with the diff since the file was shown."""
    return FileChangedError(
        f"{path} was changed by somebody else since it was last shown here, in the lines that "
        "this command would change; nothing was written. Review the difference, then adapt the "
        f"command, or repeat it if it is still right.\n{short_diff(path, shown, text)}"
    )


def short_diff(path: Path, old: str, new: str) -> str:
    """Return a unified diff that is short enough for a message."""
    diff = unified_diff(old, new, str(path), context=2)
    return shorten(diff, _MAX_DIFF_CHARS, marker="\n... (the rest of the difference is omitted)")


def _note(path: Path, changes: list[Change]) -> str:
    ranges = [(j1 + 1, j2) for _, _, j1, j2 in changes]
    lines = [str(j1) if j2 <= j1 else f"{j1}-{j2}" for j1, j2 in ranges[:_MAX_LISTED]]
    more = ", ..." if len(ranges) > _MAX_LISTED else ""
    return (
        f"\nNOTE: {path} was changed by somebody else since it was last shown here, elsewhere in "
        f"the file (before this edit at lines {', '.join(lines)}{more})."
    )
