"""Conflict detection: changes that somebody else made since a file was last shown.

An edit goes through, with a note, if what it concerns is as it was shown. Otherwise
it is refused with the difference; that shows the file as it is now, so the same
command goes through if it is repeated.
"""

from __future__ import annotations

from pathlib import Path

from oh_jupyter.editor.text.unified_diff import Opcode, changed_lines, unified_diff
from oh_jupyter.errors import FileChangedError

__all__ = ["changed_error", "check_change", "check_lines", "check_match"]

_MAX_DIFF_CHARS = 4000  # characters


def check_match(path: Path, shown: str, text: str, start: int, end: int) -> str:
    """Check a replacement that was found by its text.

    A text that was not in what was shown is one that the caller learnt elsewhere, so
    it is meant as it is now.
    """
    codes = changed_lines(shown, text)
    first, last = text.count("\n", 0, start), text.count("\n", 0, max(start, end - 1))
    touched = any(
        j1 <= last and j2 > first if j1 < j2 else first < j1 <= last for _, _, _, j1, j2 in codes
    )
    if touched and text[start:end] in shown:
        raise changed_error(path, shown, text)
    return _note(path, codes)


def check_lines(path: Path, shown: str, text: str, line: int) -> str:
    """Check an edit that was given by line numbers."""
    codes = changed_lines(shown, text)
    if any(i1 < line or (i1 == line and i1 == i2) for _, i1, i2, _, _ in codes):
        raise changed_error(path, shown, text)
    return _note(path, codes)


def check_change(path: Path, shown: str, text: str, new: str) -> str:
    """Check changes in any number of places."""
    codes = changed_lines(shown, text)
    lines = text.split("\n")
    for _, first, last, _, _ in changed_lines(text, new):
        touched = any(j1 <= last and j2 >= first for _, _, _, j1, j2 in codes)
        if touched and "\n".join(lines[first:last]) in shown:
            raise changed_error(path, shown, text)
    return _note(path, codes)


def changed_error(path: Path, shown: str, text: str) -> FileChangedError:
    """Error of a conflict, with the diff since the file was shown."""
    diff = unified_diff(shown, text, str(path), context=2)
    if len(diff) > _MAX_DIFF_CHARS:
        diff = diff[:_MAX_DIFF_CHARS] + "\n... (the rest of the difference is left out)"
    return FileChangedError(
        f"{path} was changed by somebody else since it was last shown here, where this command "
        "would change it too; nothing was written. Look at the difference, then adapt the "
        f"command, or repeat it if it is still right.\n{diff}"
    )


def _note(path: Path, codes: list[Opcode]) -> str:
    places = [str(j1 + 1) if j2 - j1 <= 1 else f"{j1 + 1}-{j2}" for _, _, _, j1, j2 in codes[:10]]
    more = ", ..." if len(codes) > 10 else ""
    return (
        f"\nNOTE: {path} was changed by somebody else since it was last shown here, elsewhere in "
        f"the file (before this edit at lines {', '.join(places)}{more})."
    )
