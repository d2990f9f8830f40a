"""Line diff of bounded cost, and the unified format; ``difflib`` takes minutes for repeated lines.

Large files are compared in step if possible. Otherwise unique lines are anchors (patience diff);
between them a table row of the longest common subsequence is one integer: 64 pairs at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress, count, islice, takewhile
from operator import contains, ne
from typing import Any, AnyStr

CONTEXT_LINES = 3
"""Unchanged lines around each change in a diff for people."""
_BLOCK_BYTES = 64 * 1024  # compared at once; fits into the processor's cache
_MAX_STORED_CELLS = 1 << 28  # pairs of lines, one bit each (32 MiB); above it halves are solved
_MAX_CELLS = 1 << 33  # takes seconds; above it all lines count as changed
_ANCHOR_LINES = (2, 4, 16)
_IN_STEP_LINES = 20_000  # of either side; from here on files are first compared in step
_PROBED_LINES = 1000  # differing lines; if both sides share some, lines moved
_MAX_SHIFT_LINES = 8  # inserted or deleted lines to try at a difference
_WINDOW_LINES = 64  # compared as a whole if no shift fits
_RESUMED_LINES = 16  # equal lines required after a shift
_PROBED_DIFFERENCES = 64  # enough to know whether differences are sparse
_MAX_SPARSE_SHARE = 0.15  # of the lines; with more differences, comparing in step is slower

_Masks = dict[Hashable, int]
_Segment = tuple[int, int, int, int]

Change = tuple[int, int, int, int]
"""``(i1, i2, j1, j2)``: lines ``old[i1:i2]`` that became ``new[j1:j2]``."""


def changed_ranges(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Change]:
    """Return the ascending, separate ranges in which two sequences differ."""
    prefix = _common_prefix(old, new, min(len(old), len(new)))
    suffix = _common_suffix(old, new, min(len(old), len(new)) - prefix)
    before, after = old[prefix : len(old) - suffix], new[prefix : len(new) - suffix]
    if not before or not after:
        whole = (prefix, len(old) - suffix, prefix, len(new) - suffix)
        return [whole] if before or after else []
    unchanged = None
    if min(len(before), len(after)) >= _IN_STEP_LINES:
        if len(before) > len(after):
            changes = _removed(before, after, prefix)
        elif len(before) < len(after):
            added = _removed(after, before, prefix) or ()
            changes = [(i, i, j1, j2) for j1, j2, i, _ in added]
        else:
            changes = _changed_in_place(before, after, prefix)
        if changes:
            return changes
        unchanged = _unchanged_in_step(before, after)
    same_before, same_after = unchanged or _unchanged(before, after)
    # The changes are between unchanged lines; the sentinels stand for the ends.
    first = prefix + 1
    i, j = [-1, *same_before, len(before)], [-1, *same_after, len(after)]
    return [
        (i1 + first, i2 + prefix, j1 + first, j2 + prefix)
        for i1, i2, j1, j2 in zip(i, i[1:], j, j[1:], strict=False)
        if i2 - i1 > 1 or j2 - j1 > 1
    ]


_Unchanged = tuple[list[int], list[int]]


def _changed_in_place(
    old: Sequence[Hashable], new: Sequence[Hashable], first: int
) -> list[Change] | None:
    """Compare equally many lines, numbered from ``first``, in place; None if lines moved."""
    changed = bytes(map(ne, old, new))
    if 2 * changed.count(1) > len(old) + 1:
        return None
    some, others = (islice(compress(lines, changed), _PROBED_LINES) for lines in (old, new))
    if not set(some).isdisjoint(others):
        return None
    edges = list(compress(count(first), map(ne, b"\0" + changed, changed + b"\0")))
    starts, ends = edges[::2], edges[1::2]
    return list(zip(starts, ends, starts, ends, strict=True))


def _removed(old: Sequence[Hashable], new: Sequence[Hashable], first: int) -> list[Change] | None:
    """Return the removed lines, numbered from ``first``; None if there are new lines."""
    # Searching an iterator for a line consumes it up to that line, in C.
    rest: Any = iter(old)
    unread, end, j = len(old), first + len(old), first
    changes: list[Change] = []
    for _ in takewhile(partial(contains, rest), new):
        unread -= 1
        if unread != (left := rest.__length_hint__()):
            changes.append((end - unread - 1, end - left - 1, j, j))
            unread = left
        j += 1
    if j < first + len(new):
        return None
    return [*changes, (end - unread, end, j, j)] if unread else changes


def _unchanged_in_step(old: Sequence[Hashable], new: Sequence[Hashable]) -> _Unchanged | None:
    """Return the indexes of unchanged lines if differences are sparse, otherwise None."""
    same_old: list[int] = []
    same_new: list[int] = []
    i = j = differences = 0
    while differences < _PROBED_DIFFERENCES or differences < _MAX_SPARSE_SHARE * i:
        count = _common_run(old, new, i, j)
        same_old += range(i, i + count)
        same_new += range(j, j + count)
        i, j = i + count, j + count
        if i == len(old) or j == len(new):
            return same_old, same_new
        shift = _shift(old, new, i, j)
        if shift is None:
            # Adjacent differences: compare a window of the next lines as a whole.
            window = _unchanged(old[i : i + _WINDOW_LINES], new[j : j + _WINDOW_LINES])
            pairs = [pair for pair in zip(*window, strict=True) if 2 * max(pair) < _WINDOW_LINES]
            if not pairs:
                return None
            same_old += [i + x for x, _ in pairs]
            same_new += [j + y for _, y in pairs]
            shift = pairs[-1][0] + 1, pairs[-1][1] + 1
            differences -= 2 * len(pairs)
        i, j, differences = i + shift[0], j + shift[1], differences + sum(shift)
    return None


def _common_run(old: Sequence[Any], new: Sequence[Any], i: int, j: int) -> int:
    """Return the number of equal lines from two indexes on."""
    known, step = 0, 64
    while old[i + known : i + known + step] == new[j + known : j + known + step]:
        known += step
        if i + known >= len(old) or j + known >= len(new):
            return min(len(old) - i, len(new) - j)
        step = min(2 * step, _BLOCK_BYTES)
    for a, b in zip(
        old[i + known : i + known + step], new[j + known : j + known + step], strict=False
    ):
        if a != b:
            break
        known += 1
    return known


def _shift(old: Sequence[Any], new: Sequence[Any], i: int, j: int) -> tuple[int, int] | None:
    """Return the fewest lines to skip on either side until both sides agree."""
    for total in range(1, 2 * _MAX_SHIFT_LINES + 1):
        for x in range(max(0, total - _MAX_SHIFT_LINES), min(total, _MAX_SHIFT_LINES) + 1):
            y = total - x
            some = old[i + x : i + x + _RESUMED_LINES]
            if some == new[j + y : j + y + _RESUMED_LINES] and some:
                return x, y
    return None


def common_ends(old: AnyStr, new: AnyStr) -> tuple[int, int]:
    """Return the lengths of the common prefix and suffix, which do not overlap."""
    limit = min(len(old), len(new))
    prefix = _common_prefix(old, new, limit)
    suffix = _common_suffix(old, new, limit - prefix)
    return prefix, suffix


def _common_prefix(old: Sequence[Any], new: Sequence[Any], limit: int) -> int:
    """Return the length of the common prefix, at most ``limit``."""
    # Slices are compared in C; at a difference the step is halved.
    known, step = 0, _BLOCK_BYTES
    while known < limit and step:
        end = min(known + step, limit)
        if old[known:end] == new[known:end]:
            known = end
        else:
            step = (end - known) // 2
    return known


def _common_suffix(old: Sequence[Any], new: Sequence[Any], limit: int) -> int:
    """Return the length of the common suffix, at most ``limit``."""
    known, step = 0, _BLOCK_BYTES
    n, m = len(old), len(new)
    while known < limit and step:
        end = min(known + step, limit)
        if old[n - end : n - known] == new[m - end : m - known]:
            known = end
        else:
            step = (end - known) // 2
    return known


def _unchanged(old: Sequence[Hashable], new: Sequence[Hashable]) -> _Unchanged:
    """Return the indexes of the unchanged lines on both sides."""
    # Lines without a counterpart would only hide common runs of the others.
    in_old = bytes(map(set(new).__contains__, old))
    a = list(compress(old, in_old))
    in_new = bytes(map(set(a).__contains__, new))
    b = list(compress(new, in_new))
    at_old, at_new = compress(range(len(old)), in_old), compress(range(len(new)), in_new)
    same_a, same_b = bytearray(len(a)), bytearray(len(b))
    segments = [(0, len(a), 0, len(b))]
    while segments:
        i1, i2, j1, j2 = segments.pop()
        limit = min(i2 - i1, j2 - j1)
        if not limit:
            continue
        some, others = a[i1:i2], b[j1:j2]
        prefix = _common_prefix(some, others, limit)
        suffix = _common_suffix(some, others, limit - prefix)
        same_a[i1 : i1 + prefix] = same_b[j1 : j1 + prefix] = b"\1" * prefix
        same_a[i2 - suffix : i2] = same_b[j2 - suffix : j2] = b"\1" * suffix
        if prefix + suffix < limit:
            inner = (i1 + prefix, i2 - suffix, j1 + prefix, j2 - suffix)
            segments += _split(a, b, inner)
    return list(compress(at_old, same_a)), list(compress(at_new, same_b))


def _split(a: list[Hashable], b: list[Hashable], segment: _Segment) -> list[_Segment]:
    """Split a segment into parts whose common lines are at their ends."""
    i1, i2, j1, j2 = segment
    anchors = _anchors(a[i1:i2], b[j1:j2])
    cells = (i2 - i1) * (j2 - j1)
    for height in _ANCHOR_LINES:
        if not anchors and cells > _MAX_STORED_CELLS:  # no unique lines: try groups of lines
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
    """Return the longest ascending run of lines that are unique on both sides."""
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
    """Return the indexes of unique lines, ascending."""
    indexes: dict[Hashable, int] = {}
    repeated = set()
    for number, line in enumerate(lines):
        if line in indexes:
            repeated.add(line)
        else:
            indexes[line] = number
    for line in repeated:
        del indexes[line]
    return indexes


def _rows(a: Sequence[Hashable], masks: _Masks, size: int) -> Iterator[int]:
    """Yield the rows of the table of common lengths, by Hyyrö's bit-parallel algorithm.

    An unset bit means that the common subsequence grows with that line.
    """
    full = row = (1 << size) - 1
    for line in a:
        matches = row & masks.get(line, 0)
        if matches:
            row = ((row + matches) | (row - matches)) & full
        yield row


def _masks(lines: Sequence[Hashable]) -> _Masks:
    """Return a bit mask of the indexes of each distinct line."""
    masks: dict[Hashable, bytearray] = {}
    for number, line in enumerate(lines):
        mask = masks.setdefault(line, bytearray())
        mask.extend(bytes((number >> 3) + 1 - len(mask)))
        mask[number >> 3] |= 1 << (number & 7)
    return {line: int.from_bytes(mask, "little") for line, mask in masks.items()}


def common_lengths(parts: Iterable[Sequence[Hashable]], whole: Sequence[Hashable]) -> list[int]:
    """Return the length of each part's longest common subsequence with the whole."""
    masks, size = _masks(whole), len(whole)
    rows = (_last(_rows(part, masks, size), size) for part in parts)
    return [size - row.bit_count() for row in rows]


def _last(rows: Iterator[int], size: int) -> int:
    row = (1 << size) - 1
    for row in rows:  # noqa: B007
        pass
    return row


def _subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest common subsequence as pairs of indexes."""
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
    """Return the best index to split ``b`` for the two halves (Hirschberg)."""
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
    """Return a byte for each line of a row: whether the common subsequence grows there."""
    bits = f"{row:0{size}b}"[::-1]
    return bits.encode().translate(bytes.maketrans(b"01", b"\x01\x00"))


def changed_lines(old: str, new: str) -> list[Change]:
    """Return the ranges of lines, counted from 0, in which two texts differ."""
    first, before, after = _differing(old, new, 0)
    changes = changed_ranges(before, after)
    return [(i1 + first, i2 + first, j1 + first, j2 + first) for i1, i2, j1, j2 in changes]


def _differing(old: str, new: str, context: int) -> tuple[int, list[str], list[str]]:
    """Return the number of the first differing line, and both texts' lines to the last one."""
    prefix, suffix = common_ends(old, new)
    start = prefix
    for _ in range(context + 1):
        start = old.rfind("\n", 0, start)
        if start < 0:
            break
    end = len(old) - suffix
    for _ in range(context + 1):
        end = old.find("\n", end)
        if end < 0:
            end = len(old)
            break
        end += 1
    else:
        end -= 1
    tail = len(old) - end
    before, after = old[start + 1 : end], new[start + 1 : len(new) - tail]
    lines = before.split("\n"), after.split("\n")
    if not (old and new) and (old or new).endswith("\n"):
        for each in lines:  # a missing file has no line, and the last newline starts none
            each.pop()
    return old.count("\n", 0, start + 1), *lines


def unified_diff(old: str, new: str, path: str, context: int = 0) -> str:
    """Return a unified diff without a final newline; "" for equal texts."""
    return unified_diffs(old, new, path, context)[0]


def unified_diffs(
    old: str, new: str, path: str, *contexts: int, counts_end: bool = True
) -> list[str]:
    """Compare once, and return a unified diff for each number of context lines.

    ``counts_end`` shows the empty text after a final newline as a line of context.
    """
    if old == new:
        return [""] * len(contexts)
    first, before, after = _differing(old, new, max(contexts))
    changes = changed_ranges(before, after)
    is_end = not counts_end and before[-1:] == [""] and first + len(before) > old.count("\n")
    limit = len(before) - is_end
    diffs = []
    for context in contexts:
        lines = [f"--- {path}", f"+++ {path}"]
        for group in _grouped(changes, context):
            lines += _hunk(group, before, after, context, first, limit)
        diffs.append("\n".join(lines))
    return diffs


def _grouped(changes: list[Change], context: int) -> list[list[Change]]:
    """Group changes whose context would overlap."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(
    group: list[Change], before: list[str], after: list[str], context: int, first: int, limit: int
) -> list[str]:
    (first_old, _, first_new, _), (_, last_old, _, last_new) = group[0], group[-1]
    start, end = max(0, first_old - context), min(max(limit, last_old), last_old + context)
    new_start, new_end = first_new - (first_old - start), last_new + end - last_old
    old_range, new_range = _range(start, end, first), _range(new_start, new_end, first)
    lines = [f"@@ -{old_range} +{new_range} @@"]
    position = start
    for i1, i2, j1, j2 in group:
        if position + 1 == i1:
            lines.append(" " + before[position])
        elif position < i1:
            lines.append(" " + "\n ".join(before[position:i1]))
        if i1 + 1 == i2:
            lines.append("-" + before[i1])
        elif i1 < i2:
            lines.append("-" + "\n-".join(before[i1:i2]))
        if j1 + 1 == j2:
            lines.append("+" + after[j1])
        elif j1 < j2:
            lines.append("+" + "\n+".join(after[j1:j2]))
        position = i2
    if position < end:
        lines.append(" " + "\n ".join(before[position:end]))
    return lines


def _range(start: int, end: int, first: int) -> str:
    """Format a range of lines like diff(1)."""
    length = end - start
    if length == 1:
        return str(first + start + 1)
    return f"{first + start + 1 if length else first + start},{length}"
