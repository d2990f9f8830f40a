"""One change of a file: its delta, the contents before and after, and whether it still counts.

A delta is ascending, separate changes of bytes, which can be applied, inverted and merged. Two
deltas of one content that do not touch can be merged: so an edit is undone below a later one.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from oh_jupyter.editor.files.atomic_write import Attributes
from oh_jupyter.editor.text.line_diff import Change, changed_ranges, common_ends

_MAX_CHANGES = 500  # of one step, which is written again with every later step


class ByteChange(NamedTuple):
    """One changed range of bytes."""

    offset: int  # in the content before the change
    old: bytes
    new: bytes

    @property
    def growth(self) -> int:
        """Number of bytes that the content grows by."""
        return len(self.new) - len(self.old)


Delta = list[ByteChange]


def compare(old: bytes, new: bytes, *, lines: bool = False) -> Delta:
    """Return the delta between two contents: one change, or one for each range of lines."""
    if old == new:
        return []
    prefix, suffix = common_ends(old, new)
    whole = ByteChange(prefix, old[prefix : len(old) - suffix], new[prefix : len(new) - suffix])
    if not lines:
        return [whole]
    before, after = _lines(whole.old), _lines(whole.new)
    changes = _merged(changed_ranges(before, after))
    starts = list(accumulate(map(len, before), initial=prefix))
    return [
        ByteChange(starts[i1], b"".join(before[i1:i2]), b"".join(after[j1:j2]))
        for i1, i2, j1, j2 in changes
    ]


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:]


def _merged(changes: list[Change]) -> list[Change]:
    """Merge neighbouring changes until there are few enough."""
    gap = 1
    while len(changes) > _MAX_CHANGES:
        merged = changes[:1]
        for i1, i2, j1, j2 in changes[1:]:
            first, last, first_new, _ = merged[-1]
            if i1 - last <= gap:
                merged[-1] = (first, i2, first_new, j2)
            else:
                merged.append((i1, i2, j1, j2))
        changes, gap = merged, 2 * gap
    return changes


def apply(delta: Sequence[ByteChange], content: bytes) -> bytes:
    """Apply a delta; raise ValueError if the content does not match it."""
    pieces, position = [], 0
    for change in delta:
        end = change.offset + len(change.old)
        if content[change.offset : end] != change.old:
            raise ValueError(f"unexpected content at byte {change.offset}")
        pieces += [content[position : change.offset], change.new]
        position = end
    return b"".join([*pieces, content[position:]])


def invert(delta: Sequence[ByteChange]) -> Delta:
    """Return the delta from the content after to the content before."""
    shifts = accumulate((change.growth for change in delta), initial=0)
    return [
        ByteChange(change.offset + shift, change.new, change.old)
        for change, shift in zip(delta, shifts, strict=False)
    ]


def moved(delta: Sequence[ByteChange], other: Sequence[ByteChange]) -> Delta | None:
    """Return a delta as it applies after another one of the same content; None if they touch."""
    if _touch(delta, other):
        return None
    growth_before = _growth_before(other)
    return [each._replace(offset=each.offset + growth_before(each.offset)) for each in delta]


def _touch(some: Sequence[ByteChange], others: Sequence[ByteChange]) -> bool:
    """Return whether two deltas of the same content change overlapping or adjoining bytes."""
    ends = [change.offset + len(change.old) for change in others]
    for change in some:
        at = bisect_left(ends, change.offset)  # the first that does not end before
        if at < len(others) and others[at].offset <= change.offset + len(change.old):
            return True
    return False


def _growth_before(delta: Sequence[ByteChange]) -> Callable[[int], int]:
    """Return a function from an offset to the bytes that a delta adds before it."""
    offsets = [change.offset for change in delta]
    growth = list(accumulate((change.growth for change in delta), initial=0))
    return lambda offset: growth[bisect_left(offsets, offset)]


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
