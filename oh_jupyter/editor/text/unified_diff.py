"""Line diff of two texts, and the unified format."""

from __future__ import annotations

from oh_jupyter.editor.text.delta import common_ends
from oh_jupyter.editor.text.line_diff import Change, changed_ranges

__all__ = ["changed_lines", "unified_diff"]


def changed_lines(old: str, new: str) -> list[Change]:
    """Ranges of lines, from 0, in which two texts differ."""
    first, before, after = _differing(old, new, 0)
    return _moved(changed_ranges(before, after), first)


def _moved(changes: list[Change], lines: int) -> list[Change]:
    if not lines:
        return changes
    return [Change(i1 + lines, i2 + lines, j1 + lines, j2 + lines) for i1, i2, j1, j2 in changes]


def _differing(old: str, new: str, context: int) -> tuple[int, list[str], list[str]]:
    """Lines of both texts from the first difference to the last, and the number of the first.

    What they share at either end is not even split, but for some lines of context.
    """
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
        for each in lines:  # a file that is not there has no line, and none is behind the last
            each.pop()
    return old.count("\n", 0, start + 1), *lines


def unified_diff(old: str, new: str, path: str, context: int = 0) -> str:
    """Unified diff without a final newline; "" for equal texts."""
    if old == new:
        return ""
    first, before, after = _differing(old, new, context)
    lines = [f"--- {path}", f"+++ {path}"]
    for group in _grouped(changed_ranges(before, after), context):
        lines += _hunk(group, before, after, context, first)
    return "\n".join(lines)


def _grouped(changes: list[Change], context: int) -> list[list[Change]]:
    """Put changes together whose context would overlap."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change.i1 - groups[-1][-1].i2 <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(
    group: list[Change], before: list[str], after: list[str], context: int, first: int
) -> list[str]:
    start, end = max(0, group[0].i1 - context), min(len(before), group[-1].i2 + context)
    lead, trail = group[0].i1 - start, end - group[-1].i2
    new_start, new_end = group[0].j1 - lead, group[-1].j2 + trail
    old_range, new_range = _range(start, end, first), _range(new_start, new_end, first)
    lines = [f"@@ -{old_range} +{new_range} @@"]
    position = start
    for i1, i2, j1, j2 in group:
        if position < i1:
            lines.append(" " + "\n ".join(before[position:i1]))
        if i1 < i2:
            lines.append("-" + "\n-".join(before[i1:i2]))
        if j1 < j2:
            lines.append("+" + "\n+".join(after[j1:j2]))
        position = i2
    if position < end:
        lines.append(" " + "\n ".join(before[position:end]))
    return lines


def _range(start: int, end: int, first: int) -> str:
    """Write a range of lines as the format of diff(1) has it."""
    length = end - start
    if length == 1:
        return str(first + start + 1)
    return f"{first + start + 1 if length else first + start},{length}"
