"""Merge of a draft into its lines, without a model and without guessing.

A marker stands for the lines between the line before it and the line after it, which are
lines of the file: its anchors. Blank lines do not count, they are everywhere. A draft is
merged only if there is exactly one way to find all anchors in the file. Where that is weak
evidence (``pass`` may be a new line as well as an old one, and a whole definition would be
dropped in silence), that way must also change clearly less than any other. Everything else
is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from oh_jupyter.editor.draft.cost import (
    defined_names,
    is_cheapest,
    is_definition,
    is_distinctive,
)
from oh_jupyter.editor.draft.markers import Draft

__all__ = ["Merged", "Refused", "Run", "merge"]

_MAX_NAMES = 10  # in a message

Run = tuple[int, int]
"""The lines that a marker stands for: the first, counted from 0, and the one after the last."""

_Readings = dict[int, tuple[int, tuple[Run, ...]]]
# For each place that was reached: how many readings lead there (2 stands for more), and the
# runs of the first of them.


@dataclass(frozen=True)
class Merged:
    """A draft that could be merged.

    Attributes:
        lines: The lines that take the place of the original ones.
    """

    lines: list[str]


@dataclass(frozen=True)
class Refused:
    """A draft that could be read in more than one way, or in none.

    Attributes:
        reason: Why, and what to do about it.
    """

    reason: str


def merge(original: list[str], draft: Draft, *, whole_file: bool = False) -> Merged | Refused:
    """Merge a draft.

    Args:
        original: The lines that the draft is about.
        draft: The draft.
        whole_file: Whether these are all lines of the file, which nobody chose.

    Returns:
        The new lines, or why there is doubt about them.
    """
    if draft.doubtful is not None:
        return Refused(
            f"The line `{draft.doubtful.strip()}` may stand for unchanged lines, or be meant as "
            "it is. Put `# ... existing code ...` on a line of its own for unchanged lines."
        )
    if not draft.markers:
        lost = _lost_definitions(original, draft.blocks[0], whole_file=whole_file)
        return lost or Merged(draft.blocks[0])
    runs = _only_reading(original, draft.blocks)
    if isinstance(runs, Refused):
        return runs
    if not _is_certain(original, draft.blocks, runs):
        return Refused(
            "The lines beside a marker may be new ones as well as lines of the file. Repeat more "
            "of the unchanged lines between each change and its markers."
        )
    lines = list(draft.blocks[0])
    for (start, end), block in zip(runs, draft.blocks[1:], strict=True):
        lines += original[start:end] + block
    if lines == original:
        return Refused("With its markers filled in, the draft is the same as the file.")
    return Merged(lines)


def _lost_definitions(original: list[str], lines: list[str], *, whole_file: bool) -> Refused | None:
    """Doubt about a draft without markers in which definitions are missing.

    In a range that somebody chose, as many new ones may have taken their place.
    """
    old, new = defined_names(original), defined_names(lines)
    lost = [name for name in old if name not in new]
    if not lost or (not whole_file and len(lost) <= len(set(new) - set(old))):
        return None
    names = ", ".join(f"`{name}`" for name in lost[:_MAX_NAMES])
    more = ", ..." if len(lost) > _MAX_NAMES else ""
    return Refused(
        f"The draft has no marker for unchanged lines, and would delete {names}{more}. Put "
        "`# ... existing code ...` on a line of its own wherever lines stay, with an unchanged "
        "line beside it, or set `start` and `end` to the lines that the draft replaces. To delete "
        "definitions, use the command str_replace."
    )


def _only_reading(original: list[str], blocks: list[list[str]]) -> tuple[Run, ...] | Refused:
    """Find the lines that the markers stand for, if there is one way only."""
    first, *inner = blocks[:-1]
    starts: _Readings = {0: (1, ())}
    if first:
        tail = _anchor(first[::-1])[::-1]
        starts = {place + len(tail): (1, ()) for place in _places(original, tail)}
        if not starts:
            return _unanchored(tail, "before")
    for block in inner:
        head, tail = _anchor(block), _anchor(block[::-1])[::-1]
        ends = _follow(starts, _places(original, head), closing=True)
        if not ends:
            return _unanchored(head, "after")
        if sum(map(_is_text, block)) == 1:  # both anchors are the same line of the file
            size, whole = len(block), set(_places(original, block))
            starts = {end + size: reading for end, reading in ends.items() if end in whole}
        else:
            shown = {end + len(head) - 1: reading for end, reading in ends.items()}
            found = _follow(shown, _places(original, tail))
            starts = {place + len(tail): reading for place, reading in found.items()}
        if not starts:
            return _unanchored(tail, "before")
    head = _anchor(blocks[-1])
    places = _places(original, head) if head else [len(original)]
    ends = _follow(starts, places, closing=True)
    if not ends:
        return _unanchored(head, "after") if head else _unanchored(blocks[-2], "before")
    (ways, runs), *others = ends.values()
    if ways > 1 or others:
        return Refused(
            "The lines beside the markers are there more than once, so the draft can be read in "
            "several ways. Repeat unchanged lines that are unique beside each marker."
        )
    return runs


def _is_text(line: str) -> bool:
    return bool(line.strip())


def _anchor(block: list[str]) -> list[str]:
    """The lines from the end of a block to its first line that is not blank."""
    for number, line in enumerate(block):
        if _is_text(line):
            return block[: number + 1]
    return block


def _places(original: list[str], anchor: list[str]) -> list[int]:
    """Where an anchor is; nowhere if it has nothing but blank lines."""
    size = len(anchor)
    if not any(map(_is_text, anchor)):
        return []
    return [
        number
        for number in range(len(original) - size + 1)
        if original[number : number + size] == anchor
    ]


def _follow(readings: _Readings, places: list[int], *, closing: bool = False) -> _Readings:
    """Go on from each reading to every later place.

    With ``closing`` the lines in between are the run of a marker.
    """
    found: _Readings = {}
    ways = 0
    first: tuple[int, tuple[Run, ...]] = (0, ())
    waiting = sorted(readings)
    index = 0
    for place in places:
        while index < len(waiting) and waiting[index] < place:
            more, runs = readings[waiting[index]]
            if not ways:
                first = (waiting[index], runs)
            ways += more
            index += 1
        if ways:
            start, runs = first
            found[place] = (min(ways, 2), (*runs, (start, place)) if closing else runs)
    return found


def _unanchored(anchor: list[str], side: str) -> Refused:
    line = next((line.strip() for line in anchor if _is_text(line)), "")
    if not line:
        return Refused(
            f"There are only blank lines {side} a marker. Repeat an unchanged line of the file "
            "there."
        )
    return Refused(
        f"The line {side} a marker, `{line}`, is not in the file at a place where the marker "
        "could be. The lines right before and right after a marker have to be unchanged lines of "
        "the file, letter by letter, indentation too."
    )


def _is_certain(original: list[str], blocks: list[list[str]], runs: tuple[Run, ...]) -> bool:
    gaps = [0, *(edge for run in runs for edge in run), len(original)]
    dropped = {
        line
        for (start, end), block in zip(list(pairwise(gaps))[::2], blocks, strict=True)
        for line in original[start:end]
        if line not in block
    }
    strong = all(
        (start == 0 or not before or _is_anchored(original[:start][::-1], before[::-1]))
        and (not after or _is_anchored(original[end:], after))
        for (start, end), before, after in zip(runs, blocks, blocks[1:], strict=False)
    )
    if strong and not any(map(is_definition, dropped)):
        return True
    return is_cheapest(original, blocks, runs)


def _is_anchored(lines: list[str], block: list[str]) -> bool:
    """Whether one of the lines that file and block share beside a marker is telling."""
    for line, shown in zip(lines, block, strict=False):
        if line != shown:
            return False
        if is_distinctive(line):
            return True
    return False
