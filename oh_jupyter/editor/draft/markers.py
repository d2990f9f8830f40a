"""Parser of drafts: lines of text, and markers that stand for unchanged lines."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

_COMMENT = re.compile(
    r"""^\s*(?P<sign>
        \#+ | //+ | --+ | ;+ | %+ | /\*+ | \*+ | <!-- | \{\# | \{/\* | \(\* | REM\b | rem\b
    )\s*(?P<text>.*?)\s*(?:\*+/\}? | --> | \#\} | \*\) )?\s*$""",
    re.VERBOSE,
)
_DOTS = r"(?:\.{3,}|…)"
_MAX_MARKER_CHARS = 200  # markers are short, and the patterns are slow on long lines
# Words that mean unchanged lines.
_STAYS = re.compile(
    r"\b(existing|unchanged|rest|remaining|remains?|no changes?|untouched|intact|unmodified|"
    r"original|previous|keep|kept|same|other)\b",
    re.IGNORECASE,
)
_BETWEEN_DOTS = re.compile(rf"^{_DOTS}\s*(?P<words>.*?)\s*{_DOTS}$")
_LEADING_DOTS = re.compile(rf"^{_DOTS}\s*(?P<words>.*)$")
_TRAILING_DOTS = re.compile(rf"^(?P<words>.*?)\s*{_DOTS}$")
# Words allowed beside them, with dots on one side only.
_COMPANION = re.compile(
    r"the|this|that|all|of|your|as|before|after|above|below|here|code|file|contents?|text|lines?|"
    r"sections?|functions?|methods?|body|class|classes|module|imports?|definitions?|"
    r"implementation|fields|cells?|rows?|entries|items|is|are|was|stays|changes?|no|needed|in|"
    r"between|and|logic"
)
# Without dots only these are clear; any comment may mention existing code.
_PLAIN = re.compile(
    r"^\(?(?:no changes?(?: (?:before|after|here|needed|required|above|below|in|between|to|this|"
    r"the|line|code|section|file)){0,5}"
    r"|existing code(?: here| unchanged| remains(?: unchanged)?)?"
    r"|(?:the )?(?:rest|remainder) of (?:the |this )?\w+(?: code)?"
    r"(?: (?:is |stays |remains )?(?:unchanged|the same|as before|here))?"
    r"|(?:code |everything )?unchanged(?: code)?|same as (?:before|above))\)?\.?$",
    re.IGNORECASE,
)
_SUSPECT = re.compile(r"\b(existing code|no changes?|rest of (the|this) \w+|unchanged)\b", re.I)
_REASON = re.compile(r"\A#EDIT:[^\n]*(?:\n|\Z)")


class LineKind(Enum):
    """Kind of a line of a draft."""

    TEXT = "text"
    MARKER = "marker"
    DOUBTFUL = "doubtful"


class Draft(NamedTuple):
    """A parsed draft: the blocks of lines between its markers."""

    blocks: list[list[str]]
    doubtful: str | None  # a line that may be a marker

    @property
    def markers(self) -> int:
        """Number of markers."""
        return len(self.blocks) - 1


def line_kind(line: str) -> LineKind:
    """Return the kind of a line of a draft."""
    if len(line) > _MAX_MARKER_CHARS:
        return LineKind.TEXT
    comment = _COMMENT.match(line)
    if comment is None:
        trailing = re.search(r"\S.*(?:#|//|/\*|--)\s*(?:\.{3}|…)\s*(?P<words>.*)", line)
        doubtful = trailing is not None and _STAYS.search(trailing["words"]) is not None
        return LineKind.DOUBTFUL if doubtful else LineKind.TEXT
    text = comment["text"].strip(" \t()[]")
    between = _BETWEEN_DOTS.match(text)
    dotted = between or _LEADING_DOTS.match(text) or _TRAILING_DOTS.match(text)
    if dotted is not None:
        words = dotted["words"].strip(" \t()[]")
        stays = _STAYS.search(words) is not None
        if not words and comment["sign"] == "*":
            return LineKind.DOUBTFUL  # inside a block comment, or a list item
        if not words or (stays and (between or _is_phrase(words))):
            return LineKind.MARKER
        if between or _LEADING_DOTS.match(text) or _SUSPECT.search(words):
            return LineKind.DOUBTFUL
        return LineKind.TEXT
    if _PLAIN.match(text):
        return LineKind.MARKER
    return LineKind.DOUBTFUL if _SUSPECT.search(text) else LineKind.TEXT


def _is_phrase(text: str) -> bool:
    """Return whether a text only says that something is unchanged."""
    words = re.findall(r"\w+", text.lower())
    plain = re.fullmatch(r"[\w\s,:.]*", text) is not None
    return plain and all(_COMPANION.fullmatch(word) or _STAYS.fullmatch(word) for word in words)


def read_draft(text: str, original: list[str]) -> Draft:
    """Parse a draft.

    A first line ``#EDIT: reason`` is dropped. A line that looks like a marker is doubtful if the
    file contains it, since it may be meant literally.

    Args:
        text: The draft.
        original: The lines to merge it into.

    Returns:
        The parsed draft.
    """
    lines = without_reason(text).replace("\r\n", "\n").removesuffix("\n").split("\n")
    present = {line.strip() for line in original}
    blocks: list[list[str]] = [[]]
    doubtful = None
    after_marker = False
    for line in lines:
        kind = line_kind(line)
        if kind is not LineKind.TEXT and line.strip() in present:
            kind = LineKind.TEXT if kind is LineKind.DOUBTFUL else LineKind.DOUBTFUL
        if kind is LineKind.MARKER:
            if not after_marker:  # several in a row are one
                blocks.append([])
        else:
            blocks[-1].append(line)
            if kind is LineKind.DOUBTFUL and doubtful is None:
                doubtful = line
        after_marker = kind is LineKind.MARKER
    if len(blocks) > 1:
        blocks[0] = _without_layout(blocks[0], original[0] if original else None)
        blocks[-1] = _without_layout(blocks[-1], original[-1] if original else None)
    return Draft(blocks, doubtful)


def without_reason(text: str) -> str:
    """Drop a first line ``#EDIT: reason``."""
    return _REASON.sub("", text, count=1)


def _without_layout(block: list[str], end: str | None) -> list[str]:
    """Drop a single blank line between a marker and the end, which is only layout."""
    return [] if block == [""] and end != "" else block
