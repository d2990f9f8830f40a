"""HTML of Observations, in the notebook's own colours and without any script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["badge", "card", "diff_block", "folded", "heading", "output_block", "table"]

_MONO = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"
_SOFT = "color: var(--jp-ui-font-color2, #666);"
_BORDER = "var(--jp-border-color2, #ddd)"
_COLOURS = {
    "ok": "var(--jp-success-color1, #388e3c)",
    "error": "var(--jp-error-color1, #d32f2f)",
    "info": "var(--jp-info-color1, #0288d1)",
}


def card(*parts: str, tone: str = "info") -> str:
    """Put parts into a box with a coloured edge.

    Args:
        *parts: HTML.
        tone: ok, error or info.

    Returns:
        HTML.
    """
    style = (
        f"border-left: 3px solid {_COLOURS[tone]}; padding: 2px 0 2px 10px; margin: 2px 0;"
        "max-width: 100%;"
    )
    return f'<div style="{style}">{"".join(parts)}</div>'


def heading(text: str, *badges: str) -> str:
    """The line on top of a card.

    Args:
        text: Plain text.
        *badges: HTML of badges.

    Returns:
        HTML.
    """
    return f'<div style="{_MONO}{_SOFT}">{escape(text)} {" ".join(badges)}</div>'


def badge(text: str, tone: str) -> str:
    """A short word in colour.

    Args:
        text: Plain text.
        tone: ok, error or info.

    Returns:
        HTML.
    """
    return f'<span style="color: {_COLOURS[tone]}; font-weight: 600;">{escape(text)}</span>'


def output_block(text: str, tone: str = "info") -> str:
    """Preformatted text that scrolls when it is long.

    Args:
        text: Plain text.
        tone: ``error`` colours it.

    Returns:
        HTML; "" for no text.
    """
    if not text:
        return ""
    colour = f"color: {_COLOURS['error']};" if tone == "error" else ""
    style = (
        f"{_MONO}{colour} margin: 2px 0; max-height: 32em; overflow: auto; white-space: pre-wrap;"
        "background: none; padding: 0;"
    )
    return f'<pre style="{style}">{escape(text)}</pre>'


def diff_block(diff: str) -> str:
    """A unified diff, its lines coloured.

    Args:
        diff: The diff.

    Returns:
        HTML; "" for no diff.
    """
    if not diff:
        return ""
    lines = "".join(_diff_line(line) for line in diff.splitlines())
    style = f"{_MONO} max-height: 32em; overflow: auto; margin: 2px 0;"
    return f'<div style="{style}">{lines}</div>'


def _diff_line(line: str) -> str:
    background = colour = "inherit"
    if line.startswith(("+++", "---", "@@")):
        colour = "var(--jp-ui-font-color2, #666)"
    elif line.startswith("+"):
        background = "color-mix(in srgb, var(--jp-success-color1, #388e3c) 18%, transparent)"
    elif line.startswith("-"):
        background = "color-mix(in srgb, var(--jp-error-color1, #d32f2f) 18%, transparent)"
    style = f"white-space: pre-wrap; background: {background}; color: {colour};"
    return f'<div style="{style}">{escape(line) or "&nbsp;"}</div>'


def folded(title: str, body: str) -> str:
    """A part that opens at a click.

    Args:
        title: Plain text that is always seen.
        body: HTML that is folded away.

    Returns:
        HTML.
    """
    style = f"{_SOFT} cursor: pointer;"
    return f'<details><summary style="{style}">{escape(title)}</summary>{body}</details>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, left-aligned.

    Args:
        columns: Headings.
        rows: Values, one sequence a row.

    Returns:
        HTML.
    """
    cell = f"text-align: left; padding: 2px 12px 2px 0; border-bottom: 1px solid {_BORDER};"
    head = "".join(f'<th style="{cell}{_SOFT}">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{cell}{_MONO} white-space: pre-wrap;">{escape(str(v))}</td>' for v in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="margin: 2px 0;"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )
