"""Terminal control sequences (ECMA-48) in text: removed, or obeyed where they overwrite it."""

from __future__ import annotations

import re
from collections import deque

_SEQUENCE = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_MOVE = re.compile(r"[\r\b]|\x1b\[[0-9;]*[ABCDGK]")
_DRAWN = re.compile(
    rf"(?P<text>[^\x1b\r\b\n]+)|(?P<control>[\r\b\n])|\x1b\[(?P<number>\d*)(?P<move>[ABCDGK])"
    rf"|{_SEQUENCE.pattern}|\x1b"
)
_TYPED = re.compile(r"(?P<text>[^\r\b\n]+)|(?P<control>[\r\b\n])(?P<number>)(?P<move>)")
MAX_COLUMN = 20_000
"""Limit for columns; larger positions come from binary output."""


def strip_ansi(text: str) -> str:
    """Remove colour codes and other terminal control sequences."""
    return _SEQUENCE.sub("", text)


def as_shown(text: str) -> str:
    """Return the plain text that a terminal finally shows, such as one frame of a progress bar."""
    text = text.replace("\r\n", "\n")
    return _drawn(text, _DRAWN) if _MOVE.search(text) else strip_ansi(text)


def overwritten(text: str) -> str:
    """Apply carriage returns and backspaces and keep colours, as JupyterLab stores a stream."""
    text = text.replace("\r\n", "\n")
    return _drawn(text, _TYPED) if "\r" in text or "\b" in text else text


def without_hidden_frames(line: str) -> str:
    """Remove the parts of an unfinished line that later ones overwrite entirely."""
    parts = line.split("\r")
    shown, longest = deque[str](), -1
    for number, part in enumerate(reversed(parts), 1):
        plain = _COLOUR.sub("", part)
        if len(plain) > longest or "\x1b" in plain or "\b" in plain:
            shown.appendleft(part)
            longest = max(longest, len(plain))
        elif number == len(parts):
            shown.appendleft("")  # whatever was before is overwritten from its start
    return "\r".join(shown)


def _drawn(text: str, tokens: re.Pattern[str]) -> str:
    """Draw text into rows."""
    rows, row, column = [""], 0, 0
    for token in tokens.finditer(text):
        if written := token["text"]:
            before, after = rows[row][:column].ljust(column), rows[row][column + len(written) :]
            rows[row] = before + written + after
            column += len(written)
            continue
        move, count = token["control"] or token["move"], min(int(token["number"] or 1), MAX_COLUMN)
        if move == "K":
            rows[row] = "" if token["number"] == "2" else rows[row][:column]
        else:
            row, column = _moved(move, count, row, column)
        rows += [""] * (row + 1 - len(rows))
    return "\n".join(rows)


def _moved(move: str | None, count: int, row: int, column: int) -> tuple[int, int]:
    """Return the row and column after a move."""
    match move:
        case "\n":
            return row + 1, 0
        case "\r":
            return row, 0
        case "A":
            return max(0, row - count), column
        case "B":
            return row + count, column
        case "C":
            return row, min(MAX_COLUMN, column + count)
        case "D" | "\b":
            return row, max(0, column - (1 if move == "\b" else count))
        case "G":
            return row, count - 1
    return row, column
