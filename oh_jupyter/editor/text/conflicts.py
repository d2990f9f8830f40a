"""Conflict detection: changes that somebody else made since a file was last shown.

An edit of what is as it was shown goes through, with a note; else the difference is shown, and the
same command goes through if it is repeated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from oh_jupyter.editor.text.line_diff import Change, changed_lines, unified_diff
from oh_jupyter.errors import FileChangedError

_MAX_DIFF_CHARS = 4000


def check_matches(path: Path, shown: str, text: str, places: Sequence[tuple[int, int]]) -> str:
    """Check replacements that were found by their text, at ascending ranges of offsets.

    A text that was not in what was shown is one that the caller learnt elsewhere.
    """
    changes = changed_lines(shown, text)
    ends = [last for _, _, _, last in changes]
    line = counted = 0
    for start, end in places:
        line += text.count("\n", counted, start)
        counted = start
        last = line + text.count("\n", start, max(start, end - 1))
        at = bisect_right(ends, line)  # the first change that does not end above
        touched = at < len(changes) and changes[at][2] <= last
        if touched and text[start:end] in shown:
            raise changed_error(path, shown, text)
    return _note(path, changes)


def check_lines(path: Path, shown: str, text: str, line: int) -> str:
    """Check an edit that was given by line numbers."""
    changes = changed_lines(shown, text)
    if any(i1 < line or (i1 == line and i1 == i2) for i1, i2, _, _ in changes[:1]):
        raise changed_error(path, shown, text)
    return _note(path, changes)


def check_change(path: Path, shown: str, text: str, new: str) -> str:
    """Check changes in any number of places."""
    changes = changed_lines(shown, text)
    ends = [last for _, _, _, last in changes]
    lines = text.split("\n")
    for first, last, _, _ in changed_lines(text, new):
        at = bisect_left(ends, first)  # the first that does not end above
        touched = at < len(changes) and changes[at][2] <= last
        if touched and "\n".join(lines[first:last]) in shown:
            raise changed_error(path, shown, text)
    return _note(path, changes)


def changed_error(path: Path, shown: str, text: str) -> FileChangedError:
    """Error of a conflict, with the diff since the file was shown."""
    diff = short_diff(path, shown, text)
    return FileChangedError(
        f"{path} was changed by somebody else since it was last shown here, where this command "
        "would change it too; nothing was written. Look at the difference, then adapt the "
        f"command, or repeat it if it is still right.\n{diff}"
    )


def short_diff(path: Path, old: str, new: str) -> str:
    """Unified diff of a length that can be part of a message."""
    diff = unified_diff(old, new, str(path), context=2)
    if len(diff) > _MAX_DIFF_CHARS:
        diff = diff[:_MAX_DIFF_CHARS] + "\n... (the rest of the difference is left out)"
    return diff


def _note(path: Path, changes: list[Change]) -> str:
    places = [str(j1 + 1) if j2 - j1 <= 1 else f"{j1 + 1}-{j2}" for _, _, j1, j2 in changes[:10]]
    more = ", ..." if len(changes) > 10 else ""
    return (
        f"\nNOTE: {path} was changed by somebody else since it was last shown here, elsewhere in "
        f"the file (before this edit at lines {', '.join(places)}{more})."
    )
