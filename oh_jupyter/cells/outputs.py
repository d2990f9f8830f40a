"""The outputs of a cell, collected in order and turned into what an agent reads."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.cells.bounded import TEXT_KEPT, Entry, KeptEntries, left_out, shortened

__all__ = ["CellOutput", "Outputs", "kept_output", "strip_ansi"]

DATA_KEPT = 16 * 1024**2
"""Characters that are kept of a cell's images and other rich outputs, all together."""

_SHORT = 1000
"""Characters of a display's plain text where there is no room for it."""

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
        left_out: Characters that the text lacks where it says so, because there was too much.
    """

    text: str = ""
    image_urls: list[str] = field(default_factory=list)
    timed_out: bool = False
    notebook_outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None
    left_out: int = 0


kept_output: ContextVar[list[CellOutput] | None] = ContextVar("kept_output", default=None)
"""Where a door that stores a cell in a notebook gets what the Observation has no place for."""


class Outputs:
    """Collects a cell's outputs as Jupyter messages describe them, in bounded memory.

    Updates of a display replace it where it stands, and ``clear_output`` forgets what
    came before, so that the result is what the person has on screen in the end. Of very much
    text the beginning and the end are kept, of rich outputs those that there is room for.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._entries = KeptEntries()
        self._clear_before_next = False
        self._execution_count: int | None = None

    def add_stream(self, text: str, name: str = "stdout") -> None:
        """Add text of stdout or stderr.

        Args:
            text: The text; both streams are interleaved as they arrive.
            name: Which of them it is.
        """
        self._make_room()
        self._entries.add_text(text, name)

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
        entry = Entry(
            metadata=dict(metadata or {}), display_id=display_id, is_result=is_result, data={}
        )
        self._fill(entry, data)
        self._entries.add(entry)

    def update_display(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Replace displays of that name; others are none of this cell's business.

        Args:
            data: The new MIME bundle.
            display_id: Their name.
        """
        for entry in self._entries:
            if display_id is not None and entry.display_id == display_id:
                self._entries.data_size -= entry.data_size
                self._fill(entry, data)
                self._entries.data_size += entry.data_size

    def _fill(self, entry: Entry, data: Mapping[str, Any]) -> None:
        """Give a display its bundle, or what there is room for."""
        room = DATA_KEPT - self._entries.data_size
        size = sum(map(_size, data.values()))
        bundle = dict(data)
        if size > room:
            rich = [kind for kind in data if kind != "text/plain"]
            plain = shortened(str(data.get("text/plain", "")), _SHORT)
            if rich:
                plain += f"\n[{', '.join(rich)} left out: {size} characters are too many]"
            bundle = {"text/plain": plain.lstrip("\n")}
            size = len(bundle["text/plain"])
        elif "text/plain" in data:
            bundle["text/plain"] = shortened(str(data["text/plain"]), TEXT_KEPT // 2)
        entry.data, entry.data_size = bundle, size
        entry.pieces = deque([bundle.get("text/plain", "")])

    def add_error(self, traceback: list[str], name: str = "", value: str = "") -> None:
        """Add an exception.

        Args:
            traceback: Its lines, as IPython made them.
            name: Its class.
            value: Its message.
        """
        self._make_room()
        whole = "\n".join(traceback)
        text = shortened(whole, TEXT_KEPT // 2)
        lines = list(traceback) if text == whole else [text]
        error = {
            "ename": name,
            "evalue": shortened(value, TEXT_KEPT // 4),
            "traceback": lines,
        }
        self._entries.add(Entry(deque([text + "\n"]), error=error))

    def add_unread(self, msg_type: str, size: int) -> None:
        """Note an output that was too large to be read at all.

        Args:
            msg_type: Type of the message.
            size: Its size in bytes.
        """
        self.add_stream(f"\n[... An output ({msg_type}) of {size} bytes is left out ...]\n")

    def clear(self, wait: bool = False) -> None:
        """Forget what came so far.

        Args:
            wait: Do so when the next output comes.
        """
        self._clear_before_next = wait
        if not wait:
            self._entries = KeptEntries()

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
            self._entries = KeptEntries()

    def last_lines(self) -> str:
        """A few lines of what came last, without colour codes."""
        return strip_ansi(self._entries.last_lines())

    def result(self, timed_out: bool = False) -> CellOutput:
        """What an agent gets to see.

        Args:
            timed_out: Whether the cell was interrupted.

        Returns:
            Text in order, each display on lines of its own, and images as data URLs.
        """
        entries = list(self._entries.head)
        missing = self._entries.left_out
        if missing:
            entries.append(Entry(deque([left_out(missing)]), stream="stderr"))
        entries += self._entries.tail
        text, images = _read(entries)
        count = self._execution_count
        stored = [_stored(entry, count) for entry in entries]
        return CellOutput(strip_ansi(text), images, timed_out, stored, count, missing)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else len(json.dumps(value, default=repr))


def _read(entries: list[Entry]) -> tuple[str, list[str]]:
    """The text of outputs, and their pictures."""
    parts: list[str] = []
    images: list[str] = []
    shown_before = False
    for entry in entries:
        shown = entry.data is not None
        if parts and not parts[-1].endswith("\n") and (shown or shown_before):
            parts.append("\n")
        shown_before = shown
        images += _image_urls(entry.data or {})
        if text := entry.text:
            parts.append(text)
    return "".join(parts), images


def _stored(entry: Entry, count: int | None) -> dict[str, Any]:
    """An output as the notebook format has it."""
    if entry.error is not None:
        return {"output_type": "error", **entry.error}
    if entry.data is None:
        return {"output_type": "stream", "name": entry.stream, "text": entry.text}
    found = {"data": dict(entry.data), "metadata": dict(entry.metadata)}
    if entry.is_result:
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
