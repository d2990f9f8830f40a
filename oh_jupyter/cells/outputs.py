"""The outputs of a cell, collected in order and turned into what an agent reads."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from typing import Any

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.cells.base import CellOutput
from oh_jupyter.cells.bounded import (
    MAX_HEAD_CHARS,
    BoundedEntries,
    Entry,
    truncate_middle,
    truncation_notice,
)
from oh_jupyter.events.progress import progress

__all__ = ["OutputCollector"]

MAX_DATA_CHARS = 16 * 1024**2
"""Characters that are kept of a cell's images and other rich outputs, all together."""

_MAX_PLACEHOLDER_CHARS = 1000
"""Characters of a display's plain text where there is no room for it."""

_IMAGE_TYPES = ("image/png", "image/jpeg", "image/svg+xml")


class OutputCollector:
    """Collects a cell's outputs as Jupyter messages describe them, in bounded memory.

    Updates of a display replace it where it stands, and ``clear_output`` forgets what
    came before, so that the result is what the person has on screen in the end. Of very much
    text the beginning and the end are kept, of rich outputs those that there is room for.
    """

    def __init__(self) -> None:
        self._entries = BoundedEntries()
        self._clear_before_next = False
        self._execution_count: int | None = None
        self._progress = progress.get()

    def add_stream(self, text: str, name: str = "stdout") -> None:
        """Add text of stdout or stderr, which are interleaved as they arrive."""
        self._apply_pending_clear()
        self._entries.add_text(text, name)
        self._progress.put_out()

    def add_display(
        self,
        data: Mapping[str, Any],
        display_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        is_result: bool = False,
    ) -> None:
        """Add a result or a display."""
        self._apply_pending_clear()
        entry = Entry(
            metadata=dict(metadata or {}), display_id=display_id, is_result=is_result, data={}
        )
        self._fill(entry, data)
        self._entries.add(entry)
        self._progress.put_out()

    def update_display(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Replace displays of that name; others are none of this cell's business."""
        for entry in self._entries:
            if display_id is not None and entry.display_id == display_id:
                self._entries.data_size -= entry.data_size
                self._fill(entry, data)
                self._entries.data_size += entry.data_size

    def _fill(self, entry: Entry, data: Mapping[str, Any]) -> None:
        """Give a display its bundle, or what there is room for."""
        room = MAX_DATA_CHARS - self._entries.data_size
        size = sum(map(_size, data.values()))
        bundle = dict(data)
        if size > room:
            rich = [kind for kind in data if kind != "text/plain"]
            plain = truncate_middle(str(data.get("text/plain", "")), _MAX_PLACEHOLDER_CHARS)
            if rich:
                plain += f"\n[{', '.join(rich)} left out: {size} characters are too many]"
            bundle = {"text/plain": plain.lstrip("\n")}
            size = len(bundle["text/plain"])
        elif "text/plain" in data:
            bundle["text/plain"] = truncate_middle(str(data["text/plain"]), MAX_HEAD_CHARS // 2)
        entry.data, entry.data_size = bundle, size
        entry.pieces = deque([bundle.get("text/plain", "")])

    def add_error(self, traceback: list[str], name: str = "", value: str = "") -> None:
        """Add an exception."""
        self._apply_pending_clear()
        whole = "\n".join(traceback)
        text = truncate_middle(whole, MAX_HEAD_CHARS // 2)
        lines = list(traceback) if text == whole else [text]
        error = {
            "ename": name,
            "evalue": truncate_middle(value, MAX_HEAD_CHARS // 4),
            "traceback": lines,
        }
        self._entries.add(Entry(deque([text + "\n"]), error=error))

    def add_oversized(self, msg_type: str, size: int) -> None:
        """Note an output that was too large to be read at all, with its size in bytes."""
        self.add_stream(f"\n[... An output ({msg_type}) of {size} bytes is left out ...]\n")

    def clear(self, wait: bool = False) -> None:
        """Forget what came so far, at once or when the next output comes."""
        self._clear_before_next = wait
        if not wait:
            self._entries = BoundedEntries()

    def add_message(self, msg_type: str, content: Mapping[str, Any]) -> None:
        """Add an IOPub message; types that are no output are ignored."""
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

    def _apply_pending_clear(self) -> None:
        if self._clear_before_next:
            self._clear_before_next = False
            self._entries = BoundedEntries()

    def last_lines(self, max_lines: int = 3) -> str:
        """A few lines of what came last, without colour codes."""
        return strip_ansi(self._entries.last_lines(max_lines))

    def result(self, timed_out: bool = False) -> CellOutput:
        """Text in order, each display on lines of its own, and images as data URLs."""
        entries = list(self._entries.head)
        omitted = self._entries.omitted_chars
        if omitted:
            entries.append(Entry(deque([truncation_notice(omitted)]), stream="stderr"))
        entries += self._entries.tail
        text, images = _read(entries)
        count = self._execution_count
        stored = [_stored(entry, count) for entry in entries]
        return CellOutput(strip_ansi(text), images, timed_out, stored, count, omitted)


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
