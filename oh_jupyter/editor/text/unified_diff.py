"""Line diff of two texts, and the unified format."""

from __future__ import annotations

from oh_jupyter.editor.text.delta import common_ends
from oh_jupyter.editor.text.line_diff import Change, changed_ranges

__all__ = ["changed_lines", "unified_diff"]


def changed_lines(old: str, new: str) -> list[Change]:
    """Ranges of lines, from 0, in which two texts differ."""
    # What they share at either end is not even split into lines.
    prefix, suffix = common_ends(old, new)
    start = old.rfind("\n", 0, prefix) + 1
    first = old.count("\n", 0, start)
    end = old.find("\n", len(old) - suffix)
    tail = len(old) - end if end >= 0 else 0
    before = old[start : len(old) - tail].split("\n")
    after = new[start : len(new) - tail].split("\n")
    return [
        Change(i1 + first, i2 + first, j1 + first, j2 + first)
        for i1, i2, j1, j2 in changed_ranges(before, after)
    ]


def unified_diff(old: str, new: str, path: str, context: int = 0) -> str:
    """Unified diff without a final newline; "" for equal texts."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    lines = [f"--- {path}", f"+++ {path}"]
    for group in _grouped(changed_lines(old, new), context):
        lines += _hunk(group, before, after, context)
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


def _hunk(group: list[Change], before: list[str], after: list[str], context: int) -> list[str]:
    start, end = max(0, group[0].i1 - context), min(len(before), group[-1].i2 + context)
    lead, trail = group[0].i1 - start, end - group[-1].i2
    new_start, new_end = group[0].j1 - lead, group[-1].j2 + trail
    lines = [f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@"]
    position = start
    for i1, i2, j1, j2 in group:
        lines += [" " + line for line in before[position:i1]]
        lines += ["-" + line for line in before[i1:i2]]
        lines += ["+" + line for line in after[j1:j2]]
        position = i2
    return lines + [" " + line for line in before[position:end]]


def _range(start: int, end: int) -> str:
    """Write a range of lines as the format of diff(1) has it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
