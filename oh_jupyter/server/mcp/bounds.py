"""How much text one result of a tool may have, so that it does not fill an agent's context."""

from __future__ import annotations

from typing import Any

from oh_jupyter.server.mcp.results import Result, text

__all__ = ["MAX_TEXT_CHARS", "bounded"]

MAX_TEXT_CHARS = 30_000
"""Characters of text that a result has; of more, the beginning and the end are shown."""

NOTE_CHARS = 500
"""Characters that are kept free for what is said of the rest."""

WHOLE_LINES_CHARS = 500
"""Characters that beginning and end may each lack in order to consist of whole lines."""


def bounded(found: Result, rest: str, limit: int = MAX_TEXT_CHARS) -> Result:
    """Leave out the middle of a result that has too much text; its pictures stay.

    Args:
        found: The result.
        rest: How an agent gets what is left out.
        limit: Characters of text that it may have.

    Returns:
        The result; if anything is left out, it says what and how to get it.
    """
    texts = [block["text"] for block in found["content"] if block["type"] == "text"]
    whole = "".join(texts)
    if len(whole) <= limit:
        return found
    start, end = _middle(whole, (limit - NOTE_CHARS) // 2)
    where = ""
    if len(texts) == 1 and "\n" in whole[start:end]:
        first = whole.count("\n", 0, start)
        where = f", lines {first + 1} to {first + whole.count(chr(10), start, end)} of this text,"
    note = f"[... {end - start} of {len(whole)} characters{where} are left out. {rest} ...]\n"
    if not whole[:start].endswith("\n"):
        note = f"\n{note}"
    return {**found, "content": _without(found["content"], start, end, note)}


def _middle(whole: str, half: int) -> tuple[int, int]:
    """Where what is left out begins and ends: between lines, unless they are very long."""
    start, end = half, len(whole) - half
    line_end = whole.rfind("\n", start - WHOLE_LINES_CHARS, start)
    line_start = whole.find("\n", end, end + WHOLE_LINES_CHARS)
    return (line_end + 1 or start), (line_start + 1 or end)


def _without(content: list[dict[str, Any]], start: int, end: int, note: str) -> list[Any]:
    """The blocks without a range of all their text, and a note in its place."""
    kept, at = [], 0
    for block in content:
        if block["type"] != "text":
            kept.append(block)
            continue
        told, before = block["text"], at
        at += len(told)
        if at <= start or before >= end:
            kept.append(block)
            continue
        told = told[: max(0, start - before)] + note + told[max(0, end - before) :]
        note = ""
        if told:
            kept.append(text(told))
    return kept
