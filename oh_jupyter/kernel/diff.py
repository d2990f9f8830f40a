"""A unified diff that shows itself: in colours in a notebook and in a terminal."""

from __future__ import annotations

import re
import sys
from typing import Any

from oh_jupyter.kernel import html

__all__ = ["Diff", "coloured"]

_COLOURS = ((r"(\+\+\+|---|@@)", "2"), (r"\+", "32"), (r"-", "31"))  # dim, green, red


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
    """Colour a diff, if somebody looks at it in a terminal.

    Args:
        diff: A unified diff.

    Returns:
        The same with the terminal's colours; unchanged where there is no terminal, as in
        a kernel, whose text is read by programs.
    """
    return "\n".join(map(_line, diff.split("\n"))) if sys.stdout.isatty() else diff


def _line(line: str) -> str:
    for pattern, code in _COLOURS:
        if re.match(pattern, line):
            return f"\x1b[{code}m{line}\x1b[0m"
    return line
