"""Merge of a draft into its lines, without a model and without guessing.

A marker stands for the lines between its anchors: the unchanged lines before and after it, not
counting blank ones. There must be exactly one way to locate all anchors; if that is weak
evidence, this reading must also cost clearly less than any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from oh_jupyter.editor.draft.model import Draft

Run = tuple[int, int]
"""The lines that a marker stands for: the first, counted from 0, and the one after the last."""

_MIN_LETTERS = 3  # letters and digits of a line that is unlikely to occur twice

# Words so common that a line of nothing else does not identify a place.
_GENERIC = re.compile(
    r"pass|else|try|finally|return|none|true|false|null|nil|undefined|break|continue|end|fi|done|"
    r"esac|begin|endif|endfor|do|then|self|this|super|init|raise|throw|yield|void|public|private|"
    r"protected|static|const|let|var|default|override|async|await|in|of|not|and|or",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|"
    r"pub(?:\(\w+\))?|unsafe|virtual|override|inline)\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|interface|trait|impl|module|namespace|type|sub|"
    r"proc|object|protocol|record)\b\W*(?P<name>\w+)"
)

# Costs of adding a line, of adding one that the file already has, and of dropping one.
_INFINITE = 1 << 40
_COST_BLANK, _COST_LINE, _COST_SEEN, _COST_KNOWN, _COST_KNOWN_HEADER = 1, 2, 3, 4, 40
_COST_DROPPED_HEADER = 6


def _is_distinctive(line: str) -> bool:
    """Return whether a line is unlikely to occur twice by chance."""
    return _letters(line) >= _MIN_LETTERS or _is_definition(line)


def _letters(line: str) -> int:
    words = re.findall(r"[^\W_]+", line)
    return sum(len(word) for word in words if not _GENERIC.fullmatch(word))


def _is_definition(line: str) -> bool:
    """Return whether a line starts a function, class or the like, in a common language."""
    return _DEFINITION.match(line) is not None


def _defined_names(lines: list[str]) -> list[str]:
    """Return the names of the functions, classes and the like that lines define, each once."""
    matches = (_DEFINITION.match(line) for line in lines)
    return list(dict.fromkeys(match["name"] for match in matches if match is not None))


def _is_cheapest(original: list[str], blocks: list[list[str]], runs: tuple[Run, ...]) -> bool:
    """Return whether every other reading of a draft costs more.

    Another reading may assign any run of lines to a marker, and may treat any shown line as new
    or as unchanged.
    """
    known = set(original)
    adding = [[_cost_to_add(line, known) for line in block] for block in blocks]
    dropping = [_cost_to_drop(line) for line in original]
    fronts = _start_costs(original, blocks, adding, dropping)
    backs = [
        back[::-1]
        for back in _start_costs(
            original[::-1],
            [block[::-1] for block in blocks[::-1]],
            [costs[::-1] for costs in adding[::-1]],
            dropping[::-1],
        )
    ][::-1]
    cost = sum(
        _block_cost(original[start:end], block, costs, dropping[start:end])
        for (start, end), block, costs in zip(_gaps(original, runs), blocks, adding, strict=True)
    )
    return all(
        _cheapest_other(front, back, run) > cost
        for front, back, run in zip(fronts, backs, runs, strict=True)
    )


def _cost_to_add(line: str, known: set[str]) -> int:
    if not line.strip():
        return _COST_BLANK
    if line not in known or not _letters(line):
        return _COST_LINE
    if _is_definition(line):
        return _COST_KNOWN_HEADER  # nobody defines the same thing twice
    return _COST_KNOWN if _is_distinctive(line) else _COST_SEEN


def _cost_to_drop(line: str) -> int:
    if not line.strip():
        return _COST_BLANK
    return _COST_DROPPED_HEADER if _is_definition(line) else _COST_LINE


def _start_costs(
    original: list[str], blocks: list[list[str]], adding: list[list[int]], dropping: list[int]
) -> list[list[int]]:
    """For each marker, return the minimum cost of starting its run at each line."""
    all_costs = []
    costs = list(accumulate(dropping, initial=0))
    for number, (block, block_costs) in enumerate(zip(blocks[:-1], adding, strict=False)):
        if number:
            # The run of the previous marker has at least one line, and costs nothing.
            best = list(accumulate(costs, min))
            costs = _drop([_INFINITE, *best[:-1]], dropping)
        for line, cost in zip(block, block_costs, strict=True):
            costs = _show(costs, line, cost, original, dropping)
        all_costs.append(costs)
    return all_costs


def _show(
    costs: list[int], line: str, cost: int, original: list[str], dropping: list[int]
) -> list[int]:
    """Return the costs after a shown line, which is new or the next line of the file."""
    after = [before + cost for before in costs]
    for number, text in enumerate(original):
        if text == line and costs[number] < after[number + 1]:
            after[number + 1] = costs[number]
    return _drop(after, dropping)


def _drop(costs: list[int], dropping: list[int]) -> list[int]:
    """Return the costs if lines of the file may be dropped."""
    for number, cost in enumerate(dropping):
        if costs[number] + cost < costs[number + 1]:
            costs[number + 1] = costs[number] + cost
    return costs


def _block_cost(lines: list[str], block: list[str], adding: list[int], dropping: list[int]) -> int:
    costs = list(accumulate(dropping, initial=0))
    for line, cost in zip(block, adding, strict=True):
        costs = _show(costs, line, cost, lines, dropping)
    return costs[-1]


def _cheapest_other(front: list[int], back: list[int], run: Run) -> int:
    """Return the cost of the cheapest reading that assigns this marker a different range."""
    best = _INFINITE
    cheapest = cheapest_other = _INFINITE  # of the starts before each end; without the run's own
    for end in range(1, len(front)):
        cheapest = min(cheapest, front[end - 1])
        if end - 1 != run[0]:
            cheapest_other = min(cheapest_other, front[end - 1])
        best = min(best, back[end] + (cheapest_other if end == run[1] else cheapest))
    return best


_MAX_NAMES = 10  # in a message

_Readings = dict[int, tuple[int, tuple[Run, ...]]]
# For each reached line: the number of readings that lead there (2 stands for more), and the
# runs of the first one.


@dataclass(frozen=True)
class Merged:
    """A merged draft.

    Attributes:
        lines: The lines that replace the original ones.
    """

    lines: list[str]


@dataclass(frozen=True)
class Refused:
    """A draft that is ambiguous, or cannot be located.

    Attributes:
        reason: The reason, and what to do.
    """

    reason: str


def merge(original: list[str], draft: Draft, *, whole_file: bool = False) -> Merged | Refused:
    """Merge a draft.

    Args:
        original: The lines that the draft replaces.
        draft: The draft.
        whole_file: Whether these are all lines of the file, without an explicit range.

    Returns:
        The new lines, or the reason for doubt.
    """
    if draft.doubtful is not None:
        return Refused(
            f"The line `{draft.doubtful.strip()}` may stand for unchanged lines or be literal. "
            "Put `# ... existing code ...` on a line of its own for unchanged lines."
        )
    draft = _without_empty_end(original, draft)
    if not draft.markers:
        lost = _lost_definitions(original, draft.blocks[0], whole_file=whole_file)
        return lost or Merged(draft.blocks[0])
    runs = _only_reading(original, draft.blocks)
    if isinstance(runs, Refused):
        return runs
    if not _is_certain(original, draft.blocks, runs):
        return Refused(
            "The lines next to a marker may be new lines or lines of the file. Repeat more of the "
            "unchanged lines between each change and its markers."
        )
    lines = list(draft.blocks[0])
    for (start, end), block in zip(runs, draft.blocks[1:], strict=True):
        lines += original[start:end] + block
    if lines == original:
        return Refused("With its markers filled in, the draft equals the file.")
    return Merged(lines)


def _without_empty_end(original: list[str], draft: Draft) -> Draft:
    """Drop a marker after the last line of the file, which stands for no line."""
    *shown, end = draft.blocks
    if not shown or any(map(_is_text, end)):
        return draft
    last_shown = next(filter(_is_text, reversed(shown[-1])), None)
    last = next(filter(_is_text, reversed(original)), None)
    if last is None or last_shown != last or original.count(last) > 1:
        return draft
    return Draft(shown, draft.doubtful)


def _lost_definitions(original: list[str], lines: list[str], *, whole_file: bool) -> Refused | None:
    """Refuse a draft without markers that would delete definitions without new ones."""
    old, new = _defined_names(original), _defined_names(lines)
    lost = [name for name in old if name not in new]
    if not lost or (not whole_file and len(lost) <= len(set(new) - set(old))):
        return None
    names = ", ".join(f"`{name}`" for name in lost[:_MAX_NAMES])
    more = ", ..." if len(lost) > _MAX_NAMES else ""
    return Refused(
        f"The draft has no marker for unchanged lines, and would delete {names}{more}. Put "
        "`# ... existing code ...` on a line of its own for unchanged lines, next to an unchanged "
        "line, or set `start` and `end` to the lines that the draft replaces. To delete "
        "definitions, use the command str_replace."
    )


def _only_reading(original: list[str], blocks: list[list[str]]) -> tuple[Run, ...] | Refused:
    """Find the lines that the markers stand for, if there is only one way."""
    first, *inner = blocks[:-1]
    starts: _Readings = {0: (1, ())}
    if first:
        tail = _anchor(first[::-1])[::-1]
        starts = {at + len(tail): (1, ()) for at in _positions(original, tail)}
        if not starts:
            return _unanchored(tail, "before")
    for block in inner:
        head, tail = _anchor(block), _anchor(block[::-1])[::-1]
        ends = _follow(starts, _positions(original, head), closing=True)
        if not ends:
            return _unanchored(head, "after")
        if sum(map(_is_text, block)) == 1:  # both anchors are the same line of the file
            whole = set(_positions(original, block))
            starts = {end + len(block): reading for end, reading in ends.items() if end in whole}
        else:
            shown = {end + len(head) - 1: reading for end, reading in ends.items()}
            followed = _follow(shown, _positions(original, tail))
            starts = {at + len(tail): reading for at, reading in followed.items()}
        if not starts:
            return _unanchored(tail, "before")
    head = _anchor(blocks[-1])
    positions = _positions(original, head) if head else [len(original)]
    ends = _follow(starts, positions, closing=True)
    if not ends:
        return _unanchored(head, "after") if head else _unanchored(blocks[-2], "before")
    (ways, runs), *others = ends.values()
    if ways > 1 or others:
        return Refused(
            "The lines next to the markers occur more than once, so the draft is ambiguous. Repeat "
            "unique unchanged lines next to each marker."
        )
    return runs


def _is_text(line: str) -> bool:
    return bool(line.strip())


def _anchor(block: list[str]) -> list[str]:
    """Return the lines of a block up to its first line that is not blank."""
    for number, line in enumerate(block):
        if _is_text(line):
            return block[: number + 1]
    return block


def _positions(original: list[str], anchor: list[str]) -> list[int]:
    """Return the positions of an anchor; none for blank lines only."""
    size = len(anchor)
    if not any(map(_is_text, anchor)):
        return []
    return [
        number
        for number in range(len(original) - size + 1)
        if original[number : number + size] == anchor
    ]


def _follow(readings: _Readings, positions: list[int], *, closing: bool = False) -> _Readings:
    """Extend each reading to every later position; ``closing`` adds a run of the lines between."""
    extended: _Readings = {}
    ways = 0
    first: tuple[int, tuple[Run, ...]] = (0, ())
    pending = sorted(readings, reverse=True)
    for at in positions:
        while pending and pending[-1] < at:
            start = pending.pop()
            more, runs = readings[start]
            if not ways:
                first = (start, runs)
            ways += more
        if ways:
            start, runs = first
            extended[at] = (min(ways, 2), (*runs, (start, at)) if closing else runs)
    return extended


def _unanchored(anchor: list[str], side: str) -> Refused:
    line = next((line.strip() for line in anchor if _is_text(line)), "")
    if not line:
        return Refused(
            f"There are only blank lines {side} a marker. Repeat an unchanged line there."
        )
    return Refused(
        f"The line {side} a marker, `{line}`, is not in the file where the marker could be. "
        "The lines directly before and after a marker must be exact copies of unchanged lines, "
        "including indentation."
    )


def _is_certain(original: list[str], blocks: list[list[str]], runs: tuple[Run, ...]) -> bool:
    dropped = {
        line
        for (start, end), block in zip(_gaps(original, runs), blocks, strict=True)
        for line in original[start:end]
        if line not in block
    }
    strong = all(
        (start == 0 or not before or _is_anchored(original[:start][::-1], before[::-1]))
        and (not after or _is_anchored(original[end:], after))
        for (start, end), before, after in zip(runs, blocks, blocks[1:], strict=False)
    )
    if strong and not any(map(_is_definition, dropped)):
        return True
    return _is_cheapest(original, blocks, runs)


def _gaps(original: list[str], runs: tuple[Run, ...]) -> list[Run]:
    """Return the ranges of lines between the runs, which the blocks replace."""
    edges = [0, *(edge for run in runs for edge in run), len(original)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _is_anchored(lines: list[str], block: list[str]) -> bool:
    """Return whether one of the lines shared by file and block at a marker is distinctive."""
    for line, shown in zip(lines, block, strict=False):
        if line != shown:
            return False
        if _is_distinctive(line):
            return True
    return False
