"""Outputs of cells as text for an agent: rich displays, and tracebacks of endless recursions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from oh_jupyter.text import shorten

MAX_JSON_CHARS = 10_000
"""Characters of a JSON display that are shown."""
MAX_CYCLE_FRAMES = 12
"""Longest cycle of functions that is recognized in a traceback."""

_DEFAULT_REPR = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-fA-F]+)?>")
"""What Python shows of an object that does not describe itself."""
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "caption", "dd", "div", "dl", "dt"),
        *("footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("p", "pre", "section", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    )
)
_HIDDEN = frozenset(("head", "script", "style", "template"))


def readable(data: Mapping[str, Any]) -> str:
    """Return the text of a display: its own plain text, unless that only names a class."""
    plain = _joined(data.get("text/plain", ""))
    if plain and not _DEFAULT_REPR.fullmatch(plain.strip()):
        return plain
    for kind, text in (("text/markdown", _joined), ("text/latex", _joined), ("text/html", _html)):
        if kind in data and (shown := text(data[kind])):
            return shown
    if "application/json" in data:
        return _json(data["application/json"])
    if "image/svg+xml" in data and (shown := _html(data["image/svg+xml"])):
        return shown
    return plain


def fold_repeated_frames(traceback: str) -> str:
    """Return the text of a traceback with one of each series of equal frames."""
    frames, shown, index = traceback.split("\n\n"), [], 0
    while index < len(frames):
        length, times = _cycle(frames, index)
        shown += frames[index : index + length]
        if times > 1:
            what = "the frame above repeats" if length == 1 else f"these {length} frames repeat"
            shown.append(f"[... {what} {times - 1} more times ...]")
        index += length * times
    return "\n\n".join(shown)


def _cycle(frames: list[str], start: int) -> tuple[int, int]:
    """Return length and count of the repetition at a frame; (1, 1) without one."""
    for length in range(1, MAX_CYCLE_FRAMES + 1):
        cycle, end = frames[start : start + length], start + length
        while frames[end : end + length] == cycle and len(cycle) == length:
            end += length
        times = (end - start) // length
        if times > 2:
            return length, times
    return 1, 1


def _joined(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return shorten(text, MAX_JSON_CHARS, marker="[... {omitted} more characters ...]")


def _html(value: Any) -> str:
    reader = _HtmlText()
    reader.feed(_joined(value))
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line.removesuffix(" |") for line in lines if line.strip("| "))


class _HtmlText(HTMLParser):
    """Collects what a page shows: a line for each block, and ``|`` between cells of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        if tag in _HIDDEN:
            self._hidden += 1
        if tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")
        if tag == "img":
            alternative = dict(attrs).get("alt")
            self.parts.append(f"[picture: {alternative}]" if alternative else "[picture]")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        if tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag in _BLOCKS or tag == "text":
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Add text."""
        if not self._hidden:
            self.parts.append(data.replace("\n", " "))
