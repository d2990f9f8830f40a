"""One change of a file: the contents before and after, its author, and whether it still counts."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import dataclass
from typing import Literal

from oh_jupyter.editor.files.atomic_write import Attributes
from oh_jupyter.editor.text.delta import ByteChange, Delta

_MAX_CACHED_BYTES = 16 * 1024 * 1024

Kind = Literal["edit", "outside", "undo", "redo"]

State = Literal["planned", "reverting", "done", "undone", "dropped"]
"""``planned`` and ``reverting`` until the file is written; ``dropped`` can be neither undone nor
redone, and only leads from one content to the next."""


@dataclass(frozen=True)
class Edit:
    """A change of a file.

    Attributes:
        number: Position among the changes of the file, without gaps.
        kind: An edit, a change by others, or the undoing or redoing of an edit.
        command: The editor's command.
        time: When, in seconds since the epoch.
        before: SHA-256 of the content before; None for no file.
        after: SHA-256 of the content after; None for no file.
        state: What became of it.
        target: Number of the edit that this one undoes or redoes.
        together: Name of the edit of several files that it belongs to, or "".
        files: The paths of that edit.
        attributes: Those of the file before, for one that is removed and comes back.
        tag: Part of the name of the temporary file while it is written.
        mode: Permissions of a new file; None for those of the umask.
        id: Number of the row, 0 if it is not stored.
    """

    number: int
    kind: Kind
    command: str
    time: float
    before: str | None
    after: str | None
    state: State = "done"
    target: int | None = None
    together: str = ""
    files: tuple[str, ...] = ()
    attributes: Attributes | None = None
    tag: str = ""
    mode: int | None = None
    id: int = 0

    @property
    def is_deletion_by_others(self) -> bool:
        """Whether others removed the file, and an undo would restore it."""
        return self.kind == "outside" and self.state == "done" and self.after is None


def encode_delta(delta: Delta) -> bytes:
    """Return the bytes of a delta."""
    header = json.dumps([(each.offset, len(each.old), len(each.new)) for each in delta])
    return b"".join([header.encode(), b"\n", *(part for each in delta for part in each[1:])])


def decode_delta(data: bytes) -> Delta:
    """Return the delta of ``encode_delta``; raise ValueError if it is damaged."""
    header, _, rest = data.partition(b"\n")
    delta, position = [], 0
    for offset, old, new in json.loads(header):
        middle, end = position + old, position + old + new
        delta.append(ByteChange(offset, rest[position:middle], rest[middle:end]))
        position = end
    if position != len(rest):
        raise ValueError(f"a delta has {len(rest)} bytes instead of {position}")
    return delta


def digest_of(content: bytes | None) -> str | None:
    """Return the hexadecimal SHA-256; None for no file."""
    return None if content is None else hashlib.sha256(content).hexdigest()


class Digests:
    """SHA-256 digests with a cache, since comparing contents is ten times as fast."""

    def __init__(self) -> None:
        self._last: deque[tuple[bytes, str]] = deque(maxlen=2)

    def of(self, content: bytes | None) -> str | None:
        """Return the hexadecimal SHA-256; None for no file."""
        for known, known_digest in tuple(self._last):
            if known == content:
                return known_digest
        digest = digest_of(content)
        if content is not None and digest is not None and len(content) <= _MAX_CACHED_BYTES:
            self._last.append((content, digest))
        return digest
