"""Line diff of bounded cost: patience anchors, and between them a longest common subsequence.

``difflib`` takes minutes where lines repeat. What is compiled and kept (such as rapidfuzz,
which needs memory for every pair of lines) is paid by every user for this one function.
Here a row of the table of the common subsequence is one Python integer, so that 64 pairs
of lines are compared at once: 16,000 lines that all repeat take a quarter of a second.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

__all__ = ["Change", "changed_ranges", "common_lengths", "common_prefix", "common_suffix"]

_BLOCK_SIZE = 64 * 1024  # compared at once; small enough to stay in the processor's cache
_MAX_STORED_CELLS = 1 << 28  # pairs of lines, a bit each; above it halves are solved (32 MiB)
_MAX_CELLS = 1 << 33  # above it, which takes seconds, lines count as changed
_ANCHOR_LINES = (2, 4, 16)

_Masks = dict[Hashable, int]
_Segment = tuple[int, int, int, int]


class Change(NamedTuple):
    """Lines ``old[i1:i2]`` that became ``new[j1:j2]``."""

    i1: int
    i2: int
    j1: int
    j2: int


def changed_ranges(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Change]:
    """Ranges in which two sequences differ, ascending and apart from each other."""
    prefix = common_prefix(old, new, min(len(old), len(new)))
    suffix = common_suffix(old, new, min(len(old), len(new)) - prefix)
    before, after = old[prefix : len(old) - suffix], new[prefix : len(new) - suffix]
    if not before or not after:
        whole = Change(prefix, len(old) - suffix, prefix, len(new) - suffix)
        return [whole] if before or after else []
    # Lines that stay, and what they border on; between two of them is what changed.
    kept_before, kept_after = _kept(before, after)
    i, j = [-1, *kept_before, len(before)], [-1, *kept_after, len(after)]
    return [
        Change(i1 + prefix + 1, i2 + prefix, j1 + prefix + 1, j2 + prefix)
        for i1, i2, j1, j2 in zip(i, i[1:], j, j[1:], strict=False)
        if i2 - i1 > 1 or j2 - j1 > 1
    ]


def common_prefix(old: Sequence[Any], new: Sequence[Any], limit: int) -> int:
    """Length of the common prefix, at most ``limit``."""
    # Slices are compared in C. At the first difference the step shrinks until it is found.
    known, step = 0, _BLOCK_SIZE
    while known < limit and step:
        end = min(known + step, limit)
        if old[known:end] == new[known:end]:
            known = end
        else:
            step = (end - known) // 2
    return known


def common_suffix(old: Sequence[Any], new: Sequence[Any], limit: int) -> int:
    """Length of the common suffix, at most ``limit``."""
    known, step = 0, _BLOCK_SIZE
    n, m = len(old), len(new)
    while known < limit and step:
        end = min(known + step, limit)
        if old[n - end : n - known] == new[m - end : m - known]:
            known = end
        else:
            step = (end - known) // 2
    return known


def _kept(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Places of the lines that stay, as many on either side."""
    common = set(old) & set(new)
    # Lines without a counterpart only hide how the others follow each other.
    at_old = [i for i, line in enumerate(old) if line in common]
    at_new = [j for j, line in enumerate(new) if line in common]
    a, b = [old[i] for i in at_old], [new[j] for j in at_new]
    kept_a, kept_b = bytearray(len(a)), bytearray(len(b))
    segments = [(0, len(a), 0, len(b))]
    while segments:
        i1, i2, j1, j2 = segments.pop()
        limit = min(i2 - i1, j2 - j1)
        if not limit:
            continue
        some, others = a[i1:i2], b[j1:j2]
        prefix = common_prefix(some, others, limit)
        suffix = common_suffix(some, others, limit - prefix)
        kept_a[i1 : i1 + prefix] = kept_b[j1 : j1 + prefix] = b"\1" * prefix
        kept_a[i2 - suffix : i2] = kept_b[j2 - suffix : j2] = b"\1" * suffix
        if prefix + suffix < limit:
            inner = (i1 + prefix, i2 - suffix, j1 + prefix, j2 - suffix)
            segments += _split(a, b, inner)
    return list(compress(at_old, kept_a)), list(compress(at_new, kept_b))


def _split(a: list[Hashable], b: list[Hashable], segment: _Segment) -> list[_Segment]:
    """Parts of a segment such that all that is common in one is at its ends."""
    i1, i2, j1, j2 = segment
    anchors = _anchors(a[i1:i2], b[j1:j2])
    cells = (i2 - i1) * (j2 - j1)
    for height in _ANCHOR_LINES:
        if not anchors and cells > _MAX_STORED_CELLS:  # where no line is unique, several may be
            anchors = _anchors(_windows(a[i1:i2], height), _windows(b[j1:j2], height))
    if not anchors:
        if cells > _MAX_CELLS:
            return []
        if cells > _MAX_STORED_CELLS and i2 - i1 > 1:
            i = (i1 + i2) // 2
            j = j1 + _middle(a[i1:i], a[i:i2], b[j1:j2])
            return [(i1, i, j1, j), (i, i2, j, j2)]
        pairs = _subsequence(a[i1:i2], b[j1:j2])
        return [(i1 + x, i1 + x + 1, j1 + y, j1 + y + 1) for x, y in pairs]
    parts, i, j = [], i1, j1
    for x, y in anchors:
        parts.append((i, i1 + x + 1, j, j1 + y + 1))  # ends with the anchor
        i, j = i1 + x + 1, j1 + y + 1
    return [*parts, (i, i2, j, j2)]


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Longest ascending run of the lines that are there once on either side."""
    once_a, once_b = _once(a), _once(b)
    pairs = [(i, once_b[line]) for line, i in once_a.items() if line in once_b]
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        before.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(j)
            ends.append(number)
        else:
            tails[at], ends[at] = j, number
    chosen = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _windows(lines: Sequence[Hashable], height: int) -> list[Hashable]:
    return list(zip(*(lines[number:] for number in range(height)), strict=False))


def _once(lines: Sequence[Hashable]) -> dict[Hashable, int]:
    """Places of the lines that are there once, ascending."""
    found: dict[Hashable, int] = {}
    again = set()
    for number, line in enumerate(lines):
        if line in found:
            again.add(line)
        else:
            found[line] = number
    for line in again:
        del found[line]
    return found


def _rows(a: Sequence[Hashable], masks: _Masks, size: int) -> Iterator[int]:
    """Rows of the table of common lengths, by Hyyrö's bit-parallel algorithm.

    A bit that is not set in row i says that the common subsequence of ``a[:i + 1]`` and
    the other sequence, of that size, grows with that line of it.
    """
    full = row = (1 << size) - 1
    for line in a:
        matches = row & masks.get(line, 0)
        if matches:
            row = ((row + matches) | (row - matches)) & full
        yield row


def _masks(lines: Sequence[Hashable]) -> _Masks:
    """For each line a bit for every place where it is."""
    masks: dict[Hashable, bytearray] = {}
    for number, line in enumerate(lines):
        mask = masks.setdefault(line, bytearray())
        mask.extend(bytes((number >> 3) + 1 - len(mask)))
        mask[number >> 3] |= 1 << (number & 7)
    return {line: int.from_bytes(mask, "little") for line, mask in masks.items()}


def common_lengths(parts: Iterable[Sequence[Hashable]], whole: Sequence[Hashable]) -> list[int]:
    """Length of the longest common subsequence of each part with the whole."""
    masks, size = _masks(whole), len(whole)
    rows = (_last(_rows(part, masks, size), size) for part in parts)
    return [size - row.bit_count() for row in rows]


def _last(rows: Iterator[int], size: int) -> int:
    row = (1 << size) - 1
    for row in rows:  # noqa: B007
        pass
    return row


def _subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Longest common subsequence, as pairs of places."""
    rows = list(_rows(a, _masks(b), len(b)))
    i, j = len(a), len(b)
    pairs = []
    while i and j:
        if rows[i - 1] >> (j - 1) & 1:
            j -= 1
            continue
        i -= 1
        if not i or rows[i - 1] >> (j - 1) & 1:
            j -= 1
            pairs.append((i, j))
    return pairs[::-1]


def _middle(first: Sequence[Hashable], second: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Where to divide ``b`` so that both halves have most in common (Hirschberg)."""
    size, back = len(b), b[::-1]
    ahead = _grown(_last(_rows(first, _masks(b), size), size), size)
    behind = _grown(_last(_rows(second[::-1], _masks(back), size), size), size)
    total = sum(behind)
    best, at = total, 0
    for number in range(size):
        total += ahead[number] - behind[size - 1 - number]
        if total > best:
            best, at = total, number + 1
    return at


def _grown(row: int, size: int) -> bytes:
    """One byte for each line of a row: whether the common subsequence grows there."""
    bits = f"{row:0{size}b}"[::-1]
    return bits.encode().translate(bytes.maketrans(b"01", b"\x01\x00"))
