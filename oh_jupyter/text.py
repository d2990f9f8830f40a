"""Texts for people and agents: shortened, with counts, suggestions, and every character visible."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Literal

_SHOWN_BREAKS = re.compile(r"[\n\t]")

_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that Unicode's property Default_Ignorable_Code_Point makes invisible."""


def shorten(
    text: str, limit: int, *, keep: Literal["start", "ends"] = "start", marker: str = "…"
) -> str:
    """Return a text of at most ``limit`` characters as it is, a longer one in part.

    The result is longer than the limit by the marker, which is not counted.

    Args:
        text: Any text. It is cut between characters, not between words or lines.
        limit: Maximum number of characters that remain of the text.
        keep: ``start`` omits the end; ``ends`` omits the middle, and keeps equally many characters
            of both ends.
        marker: Text in place of the omitted characters. ``{omitted}`` in it stands for their
            number; other braces have no meaning.
    """
    if len(text) <= limit:
        return text
    end = 0 if keep == "start" else limit // 2
    start = limit if keep == "start" else end
    shown_marker = marker.replace("{omitted}", str(len(text) - start - end))
    return f"{text[:start]}{shown_marker}{text[len(text) - end :]}"


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, with `` …`` if there are more."""
    first, _, rest = text.strip().partition("\n")
    return f"{first.rstrip()} …" if rest else first


def shown_path(path: str, root: str) -> str:
    """Return a path as people name it: relative to the workspace, absolute outside of it."""
    return path.removeprefix(os.path.join(root, "")) if root else path


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 line`` or ``3 lines``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def visible(text: str) -> str:
    r"""Return a text with an escape in place of each character that cannot be seen.

    These are control characters except line ends and tabs, such as ``\x1b``, with which a terminal
    overwrites what it has shown; characters that change the direction of what follows; those
    without width; and blanks that only look like a space.
    """
    pieces = _SHOWN_BREAKS.split(text)
    if all(map(str.isprintable, pieces)) and _IGNORABLE.search(text) is None:
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    is_plain = character.isprintable() and _IGNORABLE.match(character) is None
    return character if is_plain or character in "\n\t" else ascii(character)[1:-1]


MIN_RESEMBLANCE = 0.6
"""Ratio of difflib above which a name counts as a misspelled one."""


def did_you_mean(name: str, names: Iterable[str], min_resemblance: float = MIN_RESEMBLANCE) -> str:
    """Return a question with the nearest name and a space behind it, or "" if none is near."""
    near = nearest_name(name, names, min_resemblance)
    return f"Did you mean {near}? " if near else ""


def nearest_name(name: str, names: Iterable[str], min_resemblance: float = MIN_RESEMBLANCE) -> str:
    """Return the name that another most resembles, or ""."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1, min_resemblance)), "")
