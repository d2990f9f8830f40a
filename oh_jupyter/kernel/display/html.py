"""HTML of Observations and diffs, without scripts, for every viewer of notebooks.

The elements carry the meaning (pre, code, table, ins, del) for viewers that drop styles. The inline
styles are literals, because the sanitizer of untrusted notebooks drops ``var()``; tints suit light
and dark themes. The lab extension's style sheet maps the classes to the theme's colours. Code is in
pre and code, where viewers do not look for formulas between dollar signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Literal

from oh_jupyter.text import shown_path

LineKind = Literal["header", "place", "added", "removed", "context"]
"""Kind of a diff's line; ``place`` is the first line of a hunk."""

_PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADERS = ("--- ", "+++ ")
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed"}


@dataclass(frozen=True)
class DiffHunk:
    """A hunk of a diff.

    Attributes:
        place: Its first line.
        old: The old lines, counted from 0.
        new: The new lines, counted from 0.
        lines: The lines with their signs.
    """

    place: str
    old: range
    new: range
    lines: tuple[str, ...]


def parse_diff(diff: str) -> list[str | DiffHunk]:
    """Split a diff into hunks and the lines between them."""
    lines = diff.split("\n")
    parts: list[str | DiffHunk] = []
    position = 0
    while position < len(lines):
        match = _PLACE.match(lines[position])
        if match is None:
            parts.append(lines[position])
            position += 1
            continue
        old, new = _range(match[1], match[2]), _range(match[3], match[4])
        body = tuple(_body(lines, position + 1, len(old), len(new)))
        parts.append(DiffHunk(lines[position], old, new, body))
        position += 1 + len(body)
    return parts


def with_relative_paths(diff: str, root: str) -> str:
    """Return a diff whose headers name the files below a directory relative to it."""
    parts = (
        _relative_header(part, root)
        if isinstance(part, str)
        else "\n".join((part.place, *part.lines))
        for part in parse_diff(diff)
    )
    return "\n".join(parts)


def _relative_header(line: str, root: str) -> str:
    if not root or not line.startswith(_HEADERS):
        return line
    sign, path = line[:4], line[4:]
    return sign + shown_path(path, root)


def diff_lines(diff: str) -> Iterator[tuple[LineKind, str]]:
    """Yield each line of a diff with its kind."""
    for part in parse_diff(diff):
        if isinstance(part, str):
            yield ("header" if part.startswith(_HEADERS) else "context"), part
            continue
        yield "place", part.place
        for line in part.lines:
            yield _KINDS.get(line[:1], "context"), line


def _range(first: str, length: str | None) -> range:
    # An empty range names the line before it.
    count = 1 if length is None else int(length)
    start = int(first) - (count > 0)
    return range(start, start + count)


def _body(lines: list[str], start: int, old: int, new: int) -> Iterator[str]:
    """Yield the lines of a hunk, no more than its first line announces."""
    for number in range(start, len(lines)):
        line, sign = lines[number], lines[number][:1]
        if sign == "\\":  # "\ No newline at end of file" belongs to the previous line
            yield line
            continue
        old -= sign in ("-", " ", "")
        new -= sign in ("+", " ", "")
        if old < 0 or new < 0 or sign not in ("+", "-", " ", ""):
            return
        yield line


Tone = Literal["ok", "error", "info", "dry-run"]

_NO_MATHEMATICS = "mathjax_ignore tex2jax_ignore"
_EDGES: dict[Tone, str] = {
    "ok": "3px solid #388e3c",
    "error": "3px solid #e53935",
    "info": "3px solid #0b84c6",
    "dry-run": "3px dashed #0b84c6",
}
_TINTS: dict[Tone, str] = {
    "ok": "rgba(56, 142, 60, 0.22)",
    "error": "rgba(229, 57, 53, 0.22)",
    "info": "rgba(11, 132, 198, 0.22)",
    "dry-run": "rgba(11, 132, 198, 0.22)",
}
_SOFT = "opacity: 0.75;"
_PLAIN = "font-family: monospace; background-color: transparent; padding: 0;"
_PRE = f"margin: 2px 0; white-space: pre-wrap; word-wrap: break-word; {_PLAIN}"
_SCROLLING = f"{_PRE} max-height: 32em; overflow: auto;"
_CODE = f"white-space: pre-wrap; {_PLAIN}"
_CELL = "text-align: left; vertical-align: top; padding: 2px 12px 2px 0;"
_LINES: dict[LineKind, tuple[str, str]] = {
    "header": ("span", f"display: block; {_SOFT}"),
    "place": ("span", f"display: block; {_SOFT}"),
    "context": ("span", "display: block;"),
    "added": (
        "ins",
        "display: block; text-decoration: none; background-color: rgba(56, 142, 60, 0.2);",
    ),
    "removed": (
        "del",
        "display: block; text-decoration: none; background-color: rgba(229, 57, 53, 0.2);",
    ),
}


def card(*parts: str, tone: Tone = "info") -> str:
    """Return a box around parts of HTML with a coloured edge."""
    style = f"border-left: {_EDGES[tone]}; padding: 2px 0 2px 10px; margin: 2px 0;"
    return (
        f'<div class="oh-Output oh-mod-{tone} {_NO_MATHEMATICS}" style="{style}">'
        f"{''.join(parts)}</div>"
    )


def heading(text: str, *badges: str, tooltip: str = "") -> str:
    """Return the top line of a card: plain text with a tooltip, and the HTML of badges."""
    hint = f' title="{escape(tooltip)}"' if tooltip and tooltip != text else ""
    title = f'<span style="{_SOFT}"{hint}>{escape(text)}</span>'
    return f'<pre class="oh-Output-heading" style="{_PRE}">{"  ".join([title, *badges])}</pre>'


def badge(text: str, tone: Tone) -> str:
    """Return a short word in colour."""
    style = f"background-color: {_TINTS[tone]}; border-radius: 3px; padding: 0 5px;"
    return f'<b class="oh-Output-badge oh-mod-{tone}" style="{style}">{escape(text)}</b>'


def output_block(text: str, tone: Tone = "info") -> str:
    """Return scrolling preformatted text, coloured for an error; "" for no text."""
    if not text:
        return ""
    style, kind = _SCROLLING, ""
    if tone == "error":
        kind = " oh-mod-error"
        style += f" background-color: {_TINTS['error']}; padding: 2px 6px;"
    return f'<pre class="oh-Output-text{kind}" style="{style}">{escape(text)}</pre>'


def diff_block(diff: str) -> str:
    """Return a coloured unified diff; "" for no diff."""
    if not diff:
        return ""
    lines = "".join(
        _diff_lines(kind, [line for _, line in group])
        for kind, group in groupby(diff_lines(diff.removesuffix("\n")), lambda line: line[0])
    )
    return f'<pre class="oh-Output-text oh-mod-diff" style="{_SCROLLING}">{lines}</pre>'


def _diff_lines(kind: LineKind, lines: Sequence[str]) -> str:
    """Return lines of one kind as one element; each keeps its newline for plain viewers."""
    tag, style = _LINES[kind]
    text = "".join(f"{escape(line)}\n" for line in lines)
    return f'<{tag} class="oh-Diff-line oh-mod-{kind}" style="{style}">{text}</{tag}>'


def folded(title: str, body: str) -> str:
    """Return an element with a plain-text title whose HTML body opens on click."""
    style = f"{_SOFT} cursor: pointer;"
    return f'<details><summary style="{style}">{escape(title)}</summary>{body}</details>'


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str] | str], caption: str | None = None
) -> str:
    """Return a left-aligned table; a string in place of a row is a remark."""
    above = f'<caption style="text-align: left;">{escape(caption)}</caption>' if caption else ""
    head = "".join(f'<th style="{_CELL}">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{_row(row, len(columns))}</tr>" for row in rows)
    return (
        f'<table class="oh-Output-table {_NO_MATHEMATICS}" style="margin: 2px 0;">{above}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: Sequence[str] | str, width: int) -> str:
    if isinstance(row, str):
        return f'<td colspan="{width}" style="{_CELL}"><i>{escape(row)}</i></td>'
    return "".join(
        f'<td style="{_CELL}"><code style="{_CODE}">{escape(value)}</code></td>' for value in row
    )
