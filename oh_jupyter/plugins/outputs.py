"""The outputs of a cell, collected in order and turned into what an agent reads."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CellOutput", "Outputs", "strip_ansi"]

_ANSI = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/svg+xml")


def strip_ansi(text: str) -> str:
    """Remove terminal control sequences.

    Args:
        text: Text with colour codes and other escapes.

    Returns:
        The text without them.
    """
    return _ANSI.sub("", text)


@dataclass
class CellOutput:
    """What a cell put out.

    Attributes:
        text: Streams, results and tracebacks in order of arrival, without colour codes.
        image_urls: Images as data URLs, in order.
        timed_out: The cell was interrupted because its time was over.
    """

    text: str = ""
    image_urls: list[str] = field(default_factory=list)
    timed_out: bool = False


class Outputs:
    """Collects a cell's outputs as Jupyter messages describe them.

    Updates of a display replace it where it stands, and ``clear_output`` forgets what
    came before, so that the result is what the person has on screen in the end.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._entries: list[dict[str, Any]] = []
        self._clear_before_next = False

    def add_stream(self, text: str) -> None:
        """Add text of stdout or stderr.

        Args:
            text: The text; both streams are interleaved as they arrive.
        """
        self._make_room()
        if self._entries and "stream" in self._entries[-1]:
            self._entries[-1]["stream"].append(text)
        else:
            self._entries.append({"stream": [text]})

    def add_display(self, data: Mapping[str, Any], display_id: str | None = None) -> None:
        """Add a result or a display.

        Args:
            data: Its MIME bundle.
            display_id: Name by which it may be updated.
        """
        self._make_room()
        self._entries.append({"data": dict(data), "display_id": display_id})

    def update_display(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Replace displays of that name; others are none of this cell's business.

        Args:
            data: The new MIME bundle.
            display_id: Their name.
        """
        for entry in self._entries:
            if display_id is not None and entry.get("display_id") == display_id:
                entry["data"] = dict(data)

    def add_error(self, traceback: list[str]) -> None:
        """Add an exception.

        Args:
            traceback: Its lines, as IPython made them.
        """
        self.add_stream("\n".join(traceback) + "\n")

    def clear(self, wait: bool = False) -> None:
        """Forget what came so far.

        Args:
            wait: Do so when the next output comes.
        """
        self._clear_before_next = wait
        if not wait:
            self._entries.clear()

    def add_message(self, msg_type: str, content: Mapping[str, Any]) -> None:
        """Add an IOPub message; types that are no output are ignored.

        Args:
            msg_type: Its type.
            content: Its content.
        """
        display_id = content.get("transient", {}).get("display_id")
        if msg_type == "stream":
            self.add_stream(content["text"])
        elif msg_type in ("execute_result", "display_data"):
            self.add_display(content["data"], display_id)
        elif msg_type == "update_display_data":
            self.update_display(content["data"], display_id)
        elif msg_type == "error":
            self.add_error(content["traceback"])
        elif msg_type == "clear_output":
            self.clear(content.get("wait", False))

    def _make_room(self) -> None:
        if self._clear_before_next:
            self._clear_before_next = False
            self._entries.clear()

    def result(self, timed_out: bool = False) -> CellOutput:
        """What an agent gets to see.

        Args:
            timed_out: Whether the cell was interrupted.

        Returns:
            Text in order, each display on lines of its own, and images as data URLs.
        """
        text = ""
        images = []
        shown_before = False
        for entry in self._entries:
            shown = "data" in entry
            if text and not text.endswith("\n") and (shown or shown_before):
                text += "\n"
            shown_before = shown
            if shown:
                text += str(entry["data"].get("text/plain", ""))
                images += _image_urls(entry["data"])
            else:
                text += "".join(entry["stream"])
        return CellOutput(strip_ansi(text), images, timed_out)


def _image_urls(data: Mapping[str, Any]) -> list[str]:
    """The picture of a display; where it comes in several formats, the first will do."""
    for kind in _IMAGE_TYPES:
        if kind in data:
            content = str(data[kind])
            if kind == "image/svg+xml":
                content = b64encode(content.encode()).decode()
            return [f"data:{kind};base64,{''.join(content.split())}"]
    return []
