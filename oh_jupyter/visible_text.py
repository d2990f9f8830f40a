"""Text of others, written so that a person sees every character of it before they decide."""

from __future__ import annotations

import re

_SHOWN_BREAKS = re.compile(r"[\n\t]")

_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that Unicode's property Default_Ignorable_Code_Point makes invisible."""


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
