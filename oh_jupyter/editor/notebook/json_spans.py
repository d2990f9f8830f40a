"""Positions of the values of a JSON document in its text, for edits in place.

Dumping it again would change indentation, order and escapes; no library edits JSON in place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

_decoder = json.JSONDecoder()
_blanks = re.compile(r"[ \t\n\r]*")


class Span(NamedTuple):
    """A value, and the offsets of its text."""

    start: int
    end: int
    value: Any


def members(text: str, start: int) -> dict[str, Span]:
    """Return the spans of the values of an object that starts at an offset."""
    return dict(_values(text, start, "{", "}"))


def elements(text: str, start: int) -> list[Span]:
    """Return the spans of the values of an array that starts at an offset."""
    return [span for _, span in _values(text, start, "[", "]")]


def _values(text: str, start: int, opening: str, closing: str) -> Iterator[tuple[str, Span]]:
    _expect(text, start, opening)
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        key: Any = ""
        if opening == "{":
            key, at = _decoder.raw_decode(text, at)
            if not isinstance(key, str):
                raise ValueError(f"the key before character {at} is not a string")
            at = _skip(text, at)
            _expect(text, at, ":")
            at = _skip(text, at + 1)
        value, end = _decoder.raw_decode(text, at)
        yield key, Span(at, end, value)
        at = _after_comma(text, end, closing)


def _skip(text: str, at: int) -> int:
    match = _blanks.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise ValueError(f"{char!r} expected at character {at}")


def _after_comma(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    _expect(text, at, ",")
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        raise ValueError(f"value expected at character {at}")
    return at


@dataclass(frozen=True)
class Style:
    r"""Formatting of a document."""

    indent: str | None  # indentation of a level; None for a document on one line
    comma: str
    colon: str
    ascii: bool  # whether other characters than ASCII are escaped

    @classmethod
    def of(cls, text: str) -> Style:
        """Detect the formatting of a JSON object."""
        lead = re.match(r"\s*\{(\s*)", text)
        blank = lead[1] if lead else ""
        indent = blank.rpartition("\n")[2] if "\n" in blank else None
        colon = re.search(r'"(\s*:\s*)', text)
        comma = re.search(r'[\d"\]}](, *)"', text)
        return cls(
            indent,
            comma[1] if comma else ", ",
            colon[1] if colon and "\n" not in colon[1] else ": ",
            text.isascii() and re.search(r"\\u(?!00[0-7])", text) is not None,
        )

    def dump(self, value: object, prefix: str) -> str:
        """Return the JSON text of a value, with further lines indented by ``prefix``."""
        separators = (self.comma if self.indent is None else ",", self.colon)
        dumped = json.dumps(
            value, indent=self.indent, ensure_ascii=self.ascii, separators=separators
        )
        try:
            dumped.encode()
        except UnicodeEncodeError:  # half a surrogate pair must be escaped
            dumped = json.dumps(value, indent=self.indent, separators=separators)
        return dumped.replace("\n", "\n" + prefix)


def indentation_at(text: str, at: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def splice(text: str, replacements: list[tuple[int, int, str]]) -> tuple[int, int, str]:
    """Join several replacements into one."""
    replacements = sorted(replacements)
    first, last = replacements[0][0], replacements[-1][1]
    pieces, position = [], first
    for start, end, new in replacements:
        pieces += [text[position:start], new]
        position = end
    return first, last, "".join(pieces)
