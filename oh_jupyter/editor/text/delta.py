"""Binary deltas between two contents, which can be inverted and commuted.

A delta is a list of hunks, ascending and apart from each other. Deltas can be
applied, inverted, and commuted: two changes that do not touch can change places,
which is how an edit is undone under a later change by somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate
from typing import AnyStr

__all__ = ["Delta", "Hunk", "apply", "common_ends", "commute", "compare", "invert"]

_MAX_LINES = 5000  # per side; above it lines are not matched one by one, which is quadratic


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


def common_ends(old: AnyStr, new: AnyStr) -> tuple[int, int]:
    """Lengths of the common prefix and of the common suffix, which do not overlap."""
    limit = min(len(old), len(new))
    prefix = _common_prefix(old, new, limit)
    suffix = _common_suffix(old, new, limit - prefix)
    return prefix, suffix


_BLOCK_SIZE = 64 * 1024  # compared at once; small enough to stay in the processor's cache


def _common_prefix(old: AnyStr, new: AnyStr, limit: int) -> int:
    # Slices are compared in C. At the first difference the step shrinks until it is found.
    known, step = 0, _BLOCK_SIZE
    while known < limit and step:
        end = min(known + step, limit)
        if old[known:end] == new[known:end]:
            known = end
        else:
            step = (end - known) // 2
    return known


def _common_suffix(old: AnyStr, new: AnyStr, limit: int) -> int:
    known, step = 0, _BLOCK_SIZE
    n, m = len(old), len(new)
    while known < limit and step:
        end = min(known + step, limit)
        if old[n - end : n - known] == new[m - end : m - known]:
            known = end
        else:
            step = (end - known) // 2
    return known


def compare(old: bytes, new: bytes, *, lines: bool = False) -> Delta:
    """Find what changed."""
    if old == new:
        return []
    prefix, suffix = common_ends(old, new)
    whole = Hunk(prefix, old[prefix : len(old) - suffix], new[prefix : len(new) - suffix])
    if not lines:
        return [whole]
    before, after = whole.old.split(b"\n"), whole.new.split(b"\n")
    if max(len(before), len(after)) > _MAX_LINES:
        return [whole]
    return _compare_lines(prefix, _with_newlines(before), _with_newlines(after))


def _with_newlines(lines: list[bytes]) -> list[bytes]:
    return [line + b"\n" for line in lines[:-1]] + lines[-1:]


def _compare_lines(offset: int, before: list[bytes], after: list[bytes]) -> Delta:
    starts = list(accumulate(map(len, before), initial=offset))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        Hunk(starts[i1], b"".join(before[i1:i2]), b"".join(after[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


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
    """Swap two successive deltas: the second without the first, then the first after that.

    None if they touch, so that neither stands alone.
    """
    middle = invert(first)  # the first change, by where its results are before the second
    if _touch(middle, second):
        return None
    return (
        [replace(h, offset=h.offset + _growth_before(middle, h.offset)) for h in second],
        [
            replace(h, offset=h.offset + _growth_before(second, m.offset))
            for h, m in zip(first, middle, strict=True)
        ],
    )


def _touch(some: Sequence[Hunk], others: Sequence[Hunk]) -> bool:
    """Whether two deltas of the same content change bytes that overlap or adjoin."""
    return any(
        a.offset <= b.offset + len(b.old) and b.offset <= a.offset + len(a.old)
        for a in some
        for b in others
    )


def _growth_before(delta: Sequence[Hunk], offset: int) -> int:
    return sum(hunk.growth for hunk in delta if hunk.offset < offset)
