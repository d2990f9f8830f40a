"""Line diff of two texts, and the unified format."""

from __future__ import annotations

from difflib import SequenceMatcher

from oh_jupyter.editor.text.delta import common_ends

__all__ = ["Opcode", "changed_lines", "unified_diff"]

Opcode = tuple[str, int, int, int, int]
"""A tag and two line ranges, as ``difflib.SequenceMatcher.get_opcodes`` gives them."""

_MAX_LINES = 5000  # of the differing part; matching above that takes seconds


def changed_lines(old: str, new: str) -> list[Opcode]:
    """Find which lines changed.

    The whole texts are never matched line by line: what they share at either end is
    set aside first, which makes the comparison quick for one edit in a file of any size.
    """
    prefix, suffix = common_ends(old, new)
    first, last = old.count("\n", 0, prefix), old.count("\n", len(old) - suffix)
    before, after = old.split("\n"), new.split("\n")
    before, after = before[first : len(before) - last], after[first : len(after) - last]
    if max(len(before), len(after)) > _MAX_LINES:
        return [("replace", first, first + len(before), first, first + len(after))]
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (tag, i1 + first, i2 + first, j1 + first, j2 + first)
        for tag, i1, i2, j1, j2 in codes
        if tag != "equal"
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


def _grouped(codes: list[Opcode], context: int) -> list[list[Opcode]]:
    """Put changes together whose context would overlap."""
    groups: list[list[Opcode]] = []
    for code in codes:
        if groups and code[1] - groups[-1][-1][2] <= 2 * context:
            groups[-1].append(code)
        else:
            groups.append([code])
    return groups


def _hunk(group: list[Opcode], before: list[str], after: list[str], context: int) -> list[str]:
    start, end = max(0, group[0][1] - context), min(len(before), group[-1][2] + context)
    lead, trail = group[0][1] - start, end - group[-1][2]
    new_start, new_end = group[0][3] - lead, group[-1][4] + trail
    lines = [f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@"]
    position = start
    for _, i1, i2, j1, j2 in group:
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
