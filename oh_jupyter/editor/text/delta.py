"""Binary deltas: hunks, ascending and apart, which can be applied, inverted and commuted.

Two changes that do not touch can change places: so an edit is undone under a later one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from oh_jupyter.editor.text.line_diff import Change, changed_ranges, common_ends

_MAX_HUNKS = 500  # of one step, which is written again with every later step


@dataclass(frozen=True)
class Hunk:
    """One changed range of bytes."""

    offset: int  # where it starts in the content before the change, in bytes
    old: bytes  # the bytes that were there
    new: bytes  # the bytes that came in their place

    @property
    def growth(self) -> int:
        """Bytes that the content grew by."""
        return len(self.new) - len(self.old)


Delta = list[Hunk]


def compare(old: bytes, new: bytes, *, lines: bool = False) -> Delta:
    """Find what changed."""
    if old == new:
        return []
    prefix, suffix = common_ends(old, new)
    whole = Hunk(prefix, old[prefix : len(old) - suffix], new[prefix : len(new) - suffix])
    if not lines:
        return [whole]
    before, after = _lines(whole.old), _lines(whole.new)
    changes = _merged(changed_ranges(before, after))
    starts = list(accumulate(map(len, before), initial=prefix))
    return [
        Hunk(starts[i1], b"".join(before[i1:i2]), b"".join(after[j1:j2]))
        for i1, i2, j1, j2 in changes
    ]


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:]


def _merged(changes: list[Change]) -> list[Change]:
    """Make one change of those that are close to each other, until there are not too many."""
    gap = 1
    while len(changes) > _MAX_HUNKS:
        merged = changes[:1]
        for i1, i2, j1, j2 in changes[1:]:
            first, last, first_new, _ = merged[-1]
            if i1 - last <= gap:
                merged[-1] = (first, i2, first_new, j2)
            else:
                merged.append((i1, i2, j1, j2))
        changes, gap = merged, 2 * gap
    return changes


def apply(delta: Sequence[Hunk], content: bytes) -> bytes:
    """Content after a delta; raises ValueError for one that it does not start from."""
    pieces, position = [], 0
    for hunk in delta:
        end = hunk.offset + len(hunk.old)
        if content[hunk.offset : end] != hunk.old:
            raise ValueError(
                f"the content at byte {hunk.offset} is not what the change starts from"
            )
        pieces += [content[position : hunk.offset], hunk.new]
        position = end
    return b"".join([*pieces, content[position:]])


def invert(delta: Sequence[Hunk]) -> Delta:
    """Delta from the content after to the content before."""
    shifts = accumulate((hunk.growth for hunk in delta), initial=0)
    return [Hunk(h.offset + shift, h.new, h.old) for h, shift in zip(delta, shifts, strict=False)]


def commute(first: Sequence[Hunk], second: Sequence[Hunk]) -> tuple[Delta, Delta] | None:
    """Swap two successive deltas, each to fit the other's place; None if they touch."""
    middle = invert(first)  # the first change, by where its results are before the second
    if _touch(middle, second):
        return None
    by_middle, by_second = _growth_before(middle), _growth_before(second)
    return (
        [replace(h, offset=h.offset + by_middle(h.offset)) for h in second],
        [
            replace(h, offset=h.offset + by_second(m.offset))
            for h, m in zip(first, middle, strict=True)
        ],
    )


def _touch(some: Sequence[Hunk], others: Sequence[Hunk]) -> bool:
    """Whether two deltas of the same content change bytes that overlap or adjoin."""
    ends = [hunk.offset + len(hunk.old) for hunk in others]
    for hunk in some:
        at = bisect_left(ends, hunk.offset)  # the first that does not end before
        if at < len(others) and others[at].offset <= hunk.offset + len(hunk.old):
            return True
    return False


def _growth_before(delta: Sequence[Hunk]) -> Callable[[int], int]:
    """How many bytes a delta adds before an offset."""
    offsets = [hunk.offset for hunk in delta]
    growth = list(accumulate((hunk.growth for hunk in delta), initial=0))
    return lambda offset: growth[bisect_left(offsets, offset)]
