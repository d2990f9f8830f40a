"""Collection of a cell's outputs, in order and in bounded memory, as text for an agent."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from oh_jupyter.ansi import as_shown, overwritten, strip_ansi, without_hidden_frames
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.live import live_outputs
from oh_jupyter.events.action import progress
from oh_jupyter.output_text import fold_repeated_frames, readable
from oh_jupyter.text import shorten

MAX_HEAD_CHARS = MAX_TAIL_CHARS = 1024**2
"""Maximum characters of the start of a cell's text, and of its end."""

_PIECE_OVERHEAD_CHARS = 64  # size of an empty piece, so that their number is bounded, too

_SMALL_PIECE_CHARS = 512  # a piece shorter than this grows: print writes each newline by itself


@dataclass
class _Entry:
    """One output of a cell."""

    pieces: deque[str] = field(default_factory=deque)
    stream: str = ""  # "" for other outputs, which are kept whole or dropped
    data: dict[str, Any] | None = None
    data_size: int = 0  # characters
    metadata: dict[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    is_result: bool = False
    error: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    @property
    def size(self) -> int:
        """Size in characters, with the overhead of the pieces."""
        return sum(len(piece) + _PIECE_OVERHEAD_CHARS for piece in self.pieces)


def truncation_notice(omitted: int) -> str:
    """Return the notice that replaces omitted characters, the same as the shell's."""
    return f"\n[... Observation truncated due to length: {omitted} characters are left out ...]\n"


def truncate_middle(text: str, limit: int, omitted: int = 0) -> str:
    """Cut the middle out of a long text; ``omitted`` characters were cut out before."""
    if omitted:
        omitted -= len(truncation_notice(omitted))  # the earlier notice is cut out, too
    notice = truncation_notice(len(text) - limit // 2 * 2 + omitted)
    return shorten(text, limit, keep="ends", marker=notice)


class _BoundedEntries:
    """The first and the last outputs of a cell; the middle is counted and dropped."""

    def __init__(self) -> None:
        self.omitted_chars = 0
        self.data_size = 0
        self.head: list[_Entry] = []
        self.tail: deque[_Entry] = deque()
        self._head_room = MAX_HEAD_CHARS
        self._tail_size = 0

    def __iter__(self) -> Iterator[_Entry]:
        yield from (*self.head, *self.tail)

    def last_lines(self, max_lines: int) -> str:
        """Return the last lines."""
        entries = self.tail or self.head
        pieces = list(islice(reversed(entries[-1].pieces), 100)) if entries else []
        text = "".join(reversed(pieces))
        return "\n".join(text[-4096:].rstrip().rsplit("\n", max_lines)[-max_lines:])

    def add_text(self, text: str, stream: str) -> None:
        """Append text to the last entry if it is of the same stream, or else to a new one."""
        if self._head_room > 0:
            first, text = text[: self._head_room], text[self._head_room :]
            self._head_room -= _append(self.head, first, stream)
        if text:
            last = text[-MAX_TAIL_CHARS:]
            self.omitted_chars += len(text) - len(last)
            self._tail_size += _append(self.tail, last, stream)
            self._trim()

    def add(self, entry: _Entry) -> None:
        """Add an output that is kept whole or dropped."""
        self.data_size += entry.data_size
        if self._head_room >= entry.size:
            self._head_room -= entry.size
            self.head.append(entry)
            return
        self._head_room = 0
        self._tail_size += entry.size
        self.tail.append(entry)
        self._trim()

    def _trim(self) -> None:
        """Drop the oldest entries; not for every new piece, since cutting copies one."""
        if self._tail_size <= 2 * MAX_TAIL_CHARS:
            return
        while self._tail_size > MAX_TAIL_CHARS and len(self.tail) + len(self.tail[0].pieces) > 2:
            entry = self.tail[0]
            dropped = [entry.pieces.popleft()] if entry.stream else list(entry.pieces)
            excess = self._tail_size - MAX_TAIL_CHARS
            if entry.stream and len(dropped[0]) > excess:
                entry.pieces.appendleft(dropped[0][excess:])
                self._tail_size -= excess
                self.omitted_chars += excess
                return
            self._tail_size -= sum(len(piece) + _PIECE_OVERHEAD_CHARS for piece in dropped)
            self.omitted_chars += sum(map(len, dropped))
            if not entry.stream or not entry.pieces:
                self.data_size -= entry.data_size
                self.tail.popleft()


def _append(entries: list[_Entry] | deque[_Entry], text: str, stream: str) -> int:
    """Append text to the last entry or a new one; return by how much that grows."""
    if not entries or entries[-1].stream != stream:
        entries.append(_Entry(deque([text]), stream))
        return len(text) + _PIECE_OVERHEAD_CHARS
    pieces = entries[-1].pieces
    if pieces and len(pieces[-1]) < _SMALL_PIECE_CHARS:
        before = len(pieces[-1])
        pieces[-1] = _without_old_frames(pieces[-1] + text) if "\r" in text else pieces[-1] + text
        return len(pieces[-1]) - before
    pieces.append(text)
    return len(text) + _PIECE_OVERHEAD_CHARS


def _without_old_frames(text: str) -> str:
    """Drop the frames of a progress bar that are overwritten."""
    start = text.rfind("\n") + 1
    return text[:start] + without_hidden_frames(text[start:])


_MAX_DATA_CHARS = 16 * 1024**2  # of all images and other rich outputs of a cell
_MAX_PLACEHOLDER_CHARS = 1000  # of the plain text of a display over the limit
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/svg+xml")


class OutputCollector:
    """A cell's outputs as a frontend finally shows them, in bounded memory."""

    def __init__(self) -> None:
        self._entries = _BoundedEntries()
        self._clear_before_next = False
        self.execution_count: int | None = None
        self._progress = progress.get()
        self._live = live_outputs.get()

    def add_stream(self, text: str, name: str = "stdout") -> None:
        """Add text of stdout or stderr, in order of arrival."""
        self._apply_pending_clear()
        self._entries.add_text(text, name)
        if self._live is not None:
            stream = {"output_type": "stream", "name": name, "text": text}
            self._live.add(stream, len(text))
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
        entry = _Entry(
            metadata=dict(metadata or {}), display_id=display_id, is_result=is_result, data={}
        )
        self._fill(entry, data)
        self._entries.add(entry)
        if self._live is not None:
            self._live.add(_stored(entry, self.execution_count), entry.data_size)
        self._progress.put_out()

    def update_display(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Replace the displays with an id; ignore those of other cells."""
        for entry in self._entries:
            if display_id is not None and entry.display_id == display_id:
                self._entries.data_size -= entry.data_size
                self._fill(entry, data)
                self._entries.data_size += entry.data_size

    def _fill(self, entry: _Entry, data: Mapping[str, Any]) -> None:
        """Set the data of a display, or a placeholder above the limit."""
        room = _MAX_DATA_CHARS - self._entries.data_size
        size = sum(map(_size, data.values()))
        bundle = dict(data)
        if size > room:
            rich = [kind for kind in data if kind != "text/plain"]
            plain = truncate_middle(str(data.get("text/plain", "")), _MAX_PLACEHOLDER_CHARS)
            if rich:
                plain += f"\n[{', '.join(rich)} omitted: {size} characters are too many]"
            bundle = {"text/plain": plain.lstrip("\n")}
            size = len(bundle["text/plain"])
        elif "text/plain" in data:
            bundle["text/plain"] = truncate_middle(str(data["text/plain"]), MAX_HEAD_CHARS // 2)
        entry.data, entry.data_size = bundle, size
        entry.pieces = deque([truncate_middle(readable(bundle), MAX_HEAD_CHARS // 2)])

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
        entry = _Entry(deque([fold_repeated_frames(strip_ansi(text)) + "\n"]), error=error)
        self._entries.add(entry)
        if self._live is not None:
            self._live.add(_stored(entry, None), len(text))

    def add_oversized(self, msg_type: str, size: int) -> None:
        """Add a notice for an output that is too large to read, with its size in bytes."""
        self.add_stream(f"\n[... An output ({msg_type}) of {size} bytes was omitted ...]\n")

    def clear(self, wait: bool = False) -> None:
        """Remove all outputs, now or before the next one."""
        self._clear_before_next = wait
        if not wait:
            self._entries = _BoundedEntries()

    def add_message(self, msg_type: str, content: Mapping[str, Any]) -> None:
        """Add an IOPub message; ignore types that are not outputs."""
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
            self.execution_count = content.get("execution_count")
        elif msg_type == "clear_output":
            self.clear(content.get("wait", False))

    def _apply_pending_clear(self) -> None:
        if self._clear_before_next:
            self.clear()

    def last_lines(self, max_lines: int = 3) -> str:
        """Return the last lines, without colour codes."""
        return as_shown(self._entries.last_lines(max_lines))

    def result(self, timed_out: bool = False) -> CellOutput:
        """Return the output; each display starts and ends its own lines of the text."""
        entries = self._bounded()
        text, images = _read(entries)
        count = self.execution_count
        stored = [_stored(entry, count) for entry in entries]
        omitted = self._entries.omitted_chars
        return CellOutput(strip_ansi(text), images, timed_out, stored, count, omitted)

    @property
    def text(self) -> str:
        """The text so far; on any thread."""
        return strip_ansi(_read(self._bounded())[0])

    def _bounded(self) -> list[_Entry]:
        """Return the first and the last outputs, with a notice about omitted ones."""
        entries = list(self._entries.head)
        if omitted := self._entries.omitted_chars:
            entries.append(_Entry(deque([truncation_notice(omitted)]), stream="stderr"))
        return entries + list(self._entries.tail)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else len(json.dumps(value, default=repr))


def _read(entries: list[_Entry]) -> tuple[str, list[str]]:
    """Return the text of outputs, and their images."""
    parts: list[str] = []
    images: list[str] = []
    was_display = False
    for entry in entries:
        is_display = entry.data is not None
        if parts and not parts[-1].endswith("\n") and (is_display or was_display):
            parts.append("\n")
        was_display = is_display
        images += _image_urls(entry.data or {})
        if text := as_shown(entry.text) if entry.stream else entry.text:
            parts.append(text)
    return "".join(parts), images


def _stored(entry: _Entry, count: int | None) -> dict[str, Any]:
    """Return an output in the notebook format."""
    if entry.error is not None:
        return {"output_type": "error", **entry.error}
    if entry.data is None:
        return {"output_type": "stream", "name": entry.stream, "text": overwritten(entry.text)}
    bundle = {"data": dict(entry.data), "metadata": dict(entry.metadata)}
    if entry.is_result:
        return {"output_type": "execute_result", "execution_count": count, **bundle}
    return {"output_type": "display_data", **bundle}


def _image_urls(data: Mapping[str, Any]) -> list[str]:
    """Return the image of a display, in the first of its formats."""
    for kind in _IMAGE_TYPES:
        if kind in data:
            content = str(data[kind])
            if kind == "image/svg+xml":
                content = b64encode(content.encode()).decode()
            return [f"data:{kind};base64,{''.join(content.split())}"]
    return []
