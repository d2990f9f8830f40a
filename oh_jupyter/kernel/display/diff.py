"""A unified diff that shows itself: in colours in a notebook and in a terminal."""

from __future__ import annotations

import sys
from typing import Any

from oh_jupyter.kernel.display import html
from oh_jupyter.kernel.display.hunks import LineKind, diff_lines

__all__ = ["Diff", "coloured"]

_COLOURS: dict[LineKind, str] = {"header": "2", "place": "2", "added": "32", "removed": "31"}
"""Dim, green, red: by what a terminal calls them."""


class Diff(str):
    """A diff as text; only its display is more than that of any other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return html.card(html.output_block("Nothing differs."), tone="ok")
        return html.card(html.diff_block(self), tone="info")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(coloured(self) if self else "Nothing differs.")


def coloured(diff: str) -> str:
    """A diff with a terminal's colours; unchanged where there is no terminal, as in a kernel."""
    if not sys.stdout.isatty():
        return diff
    return "\n".join(_line(kind, line) for kind, line in diff_lines(diff))


def _line(kind: LineKind, line: str) -> str:
    return f"\x1b[{_COLOURS[kind]}m{line}\x1b[0m" if kind in _COLOURS else line
