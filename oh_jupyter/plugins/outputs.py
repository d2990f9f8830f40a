"""The outputs of a cell, collected in order and turned into what an agent reads."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CellOutput", "Outputs", "kept_output", "strip_ansi"]

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
        notebook_outputs: Everything, as a notebook stores it.
        execution_count: The kernel's number for the cell, if it told.
    """

    text: str = ""
    image_urls: list[str] = field(default_factory=list)
    timed_out: bool = False
    notebook_outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None


kept_output: ContextVar[list[CellOutput] | None] = ContextVar("kept_output", default=None)
"""Where a door that stores a cell in a notebook gets what the Observation has no place for."""


class Outputs:
    """Collects a cell's outputs as Jupyter messages describe them.

    Updates of a display replace it where it stands, and ``clear_output`` forgets what
    came before, so that the result is what the person has on screen in the end.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._entries: list[dict[str, Any]] = []
        self._clear_before_next = False
        self._execution_count: int | None = None

    def add_stream(self, text: str, name: str = "stdout") -> None:
        """Add text of stdout or stderr.

        Args:
            text: The text; both streams are interleaved as they arrive.
            name: Which of them it is.
        """
        self._make_room()
        if self._entries and self._entries[-1].get("name") == name:
            self._entries[-1]["stream"].append(text)
        else:
            self._entries.append({"stream": [text], "name": name})

    def add_display(
        self,
        data: Mapping[str, Any],
        display_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        is_result: bool = False,
    ) -> None:
        """Add a result or a display.

        Args:
            data: Its MIME bundle.
            display_id: Name by which it may be updated.
            metadata: What goes with the bundle.
            is_result: Whether it is the value of the cell's last line.
        """
        self._make_room()
        entry = {"data": dict(data), "display_id": display_id, "metadata": dict(metadata or {})}
        self._entries.append({**entry, "is_result": is_result})

    def update_display(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Replace displays of that name; others are none of this cell's business.

        Args:
            data: The new MIME bundle.
            display_id: Their name.
        """
        for entry in self._entries:
            if display_id is not None and entry.get("display_id") == display_id:
                entry["data"] = dict(data)

    def add_error(self, traceback: list[str], name: str = "", value: str = "") -> None:
        """Add an exception.

        Args:
            traceback: Its lines, as IPython made them.
            name: Its class.
            value: Its message.
        """
        self._make_room()
        error = {"ename": name, "evalue": value, "traceback": list(traceback)}
        self._entries.append({"stream": ["\n".join(traceback) + "\n"], "error": error})

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
            self.add_stream(content["text"], content.get("name", "stdout"))
        elif msg_type in ("execute_result", "display_data"):
            metadata, is_result = content.get("metadata"), msg_type == "execute_result"
            self.add_display(content["data"], display_id, metadata=metadata, is_result=is_result)
        elif msg_type == "update_display_data":
            self.update_display(content["data"], display_id)
        elif msg_type == "error":
            name, value = content.get("ename", ""), content.get("evalue", "")
            self.add_error(content["traceback"], name, value)
        elif msg_type == "execute_input":
            self._execution_count = content.get("execution_count")
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
        stored = [_stored(entry, self._execution_count) for entry in self._entries]
        return CellOutput(strip_ansi(text), images, timed_out, stored, self._execution_count)


def _stored(entry: Mapping[str, Any], count: int | None) -> dict[str, Any]:
    """An output as the notebook format has it."""
    if "error" in entry:
        return {"output_type": "error", **entry["error"]}
    if "stream" in entry:
        text = "".join(entry["stream"])
        return {"output_type": "stream", "name": entry["name"], "text": text}
    found = {"data": dict(entry["data"]), "metadata": dict(entry["metadata"])}
    if entry["is_result"]:
        return {"output_type": "execute_result", "execution_count": count, **found}
    return {"output_type": "display_data", **found}


def _image_urls(data: Mapping[str, Any]) -> list[str]:
    """The picture of a display; where it comes in several formats, the first will do."""
    for kind in _IMAGE_TYPES:
        if kind in data:
            content = str(data[kind])
            if kind == "image/svg+xml":
                content = b64encode(content.encode()).decode()
            return [f"data:{kind};base64,{''.join(content.split())}"]
    return []
