"""Merge of a draft into its lines, without a model and without guessing.

A marker stands for the lines between its anchors, the lines before and after it, which are the
file's; blank lines do not count. There must be exactly one way to find all anchors; where that is
weak evidence, it must also cost clearly less than any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate, pairwise

from oh_jupyter.editor.draft.markers import Draft

_MIN_LETTERS = 3  # letters and digits; below it a line is met again too easily

# Words that programs are full of: a line of nothing else says little about where it is.
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

# Costs of adding a line, of adding one that the file has already, and of dropping one.
_COST_BLANK, _COST_LINE, _COST_SEEN, _COST_KNOWN, _COST_KNOWN_HEADER = 1, 2, 3, 4, 40
_COST_DROPPED_HEADER = 6


def _is_distinctive(line: str) -> bool:
    """Whether a line is hardly met twice by chance."""
    return _own_letters(line) >= _MIN_LETTERS or _is_definition(line)


def _own_letters(line: str) -> int:
    words = re.findall(r"[^\W_]+", line)
    return sum(len(word) for word in words if not _GENERIC.fullmatch(word))


def _is_definition(line: str) -> bool:
    """Whether a line begins a function, a class or the like, in a common language."""
    return _DEFINITION.match(line) is not None


def _defined_names(lines: list[str]) -> list[str]:
    """Names of the functions, classes and the like that lines define, each once."""
    found = (_DEFINITION.match(line) for line in lines)
    return list(dict.fromkeys(match["name"] for match in found if match is not None))


def _is_cheapest(
    original: list[str], blocks: list[list[str]], runs: tuple[tuple[int, int], ...]
) -> bool:
    """Whether every other reading of a draft costs more.

    Others may take any run of lines for a marker, and any shown line for a new one or the file's.
    """
    known = set(original)
    adding = [[_cost_to_add(line, known) for line in block] for block in blocks]
    dropping = [_cost_to_drop(line) for line in original]
    fronts = _fronts(original, blocks, adding, dropping)
    backs = [
        back[::-1]
        for back in _fronts(
            original[::-1],
            [block[::-1] for block in blocks[::-1]],
            [costs[::-1] for costs in adding[::-1]],
            dropping[::-1],
        )
    ][::-1]
    start = 0
    price = 0
    for (run_start, run_end), block, costs in zip(runs, blocks, adding, strict=False):
        price += _block_cost(original[start:run_start], block, costs, dropping[start:run_start])
        start = run_end
    price += _block_cost(original[start:], blocks[-1], adding[-1], dropping[start:])
    return all(
        _cheapest_other(front, back, run) > price
        for front, back, run in zip(fronts, backs, runs, strict=True)
    )


def _cost_to_add(line: str, known: set[str]) -> int:
    if not line.strip():
        return _COST_BLANK
    if line not in known or not _own_letters(line):
        return _COST_LINE
    if _is_definition(line):
        return _COST_KNOWN_HEADER  # nobody defines the same thing twice
    return _COST_KNOWN if _is_distinctive(line) else _COST_SEEN


def _cost_to_drop(line: str) -> int:
    if not line.strip():
        return _COST_BLANK
    return _COST_DROPPED_HEADER if _is_definition(line) else _COST_LINE


def _fronts(
    original: list[str], blocks: list[list[str]], adding: list[list[int]], dropping: list[int]
) -> list[list[int]]:
    """For each marker: what it costs at least to begin its run at each line."""
    fronts = []
    costs = list(accumulate(dropping, initial=0))
    for number, (block, prices) in enumerate(zip(blocks[:-1], adding, strict=False)):
        if number:
            # The marker before: its run has one line or more, and costs nothing.
            best = list(accumulate(costs, min))
            costs = [1 << 40, *best[:-1]]
            costs = _drop(costs, dropping)
        for line, price in zip(block, prices, strict=True):
            costs = _show(costs, line, price, original, dropping)
        fronts.append(costs)
    return fronts


def _show(
    costs: list[int], line: str, price: int, original: list[str], dropping: list[int]
) -> list[int]:
    """Go on by a shown line, which is added or is the next line of the file."""
    after = [cost + price for cost in costs]
    for number, text in enumerate(original):
        if text == line and costs[number] < after[number + 1]:
            after[number + 1] = costs[number]
    return _drop(after, dropping)


def _drop(costs: list[int], dropping: list[int]) -> list[int]:
    """Let lines of the file be dropped."""
    for number, price in enumerate(dropping):
        if costs[number] + price < costs[number + 1]:
            costs[number + 1] = costs[number] + price
    return costs


def _block_cost(lines: list[str], block: list[str], adding: list[int], dropping: list[int]) -> int:
    costs = list(accumulate(dropping, initial=0))
    for line, price in zip(block, adding, strict=True):
        costs = _show(costs, line, price, lines, dropping)
    return costs[-1]


def _cheapest_other(front: list[int], back: list[int], run: tuple[int, int]) -> int:
    """What the cheapest reading costs that gives a marker other lines than these."""
    best = 1 << 40
    # The cheapest beginning before each end, and the cheapest that is not the run's own.
    cheapest = cheapest_other = 1 << 40
    for end in range(1, len(front)):
        cheapest = min(cheapest, front[end - 1])
        if end - 1 != run[0]:
            cheapest_other = min(cheapest_other, front[end - 1])
        best = min(best, back[end] + (cheapest_other if end == run[1] else cheapest))
    return best


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
    draft = _without_empty_end(original, draft)
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


def _without_empty_end(original: list[str], draft: Draft) -> Draft:
    """Drop a marker behind the last line of the file, which can stand for nothing."""
    *shown, end = draft.blocks
    if not shown or any(map(_is_text, end)):
        return draft
    last_shown = next(filter(_is_text, reversed(shown[-1])), None)
    last = next(filter(_is_text, reversed(original)), None)
    if last is None or last_shown != last or original.count(last) > 1:
        return draft
    return Draft(shown, draft.doubtful)


def _lost_definitions(original: list[str], lines: list[str], *, whole_file: bool) -> Refused | None:
    """Doubt about a draft without markers that drops definitions which no new ones replace."""
    old, new = _defined_names(original), _defined_names(lines)
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
    """Go on from each reading to every later place; ``closing`` makes a run of what is between."""
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
    if strong and not any(map(_is_definition, dropped)):
        return True
    return _is_cheapest(original, blocks, runs)


def _is_anchored(lines: list[str], block: list[str]) -> bool:
    """Whether one of the lines that file and block share beside a marker is telling."""
    for line, shown in zip(lines, block, strict=False):
        if line != shown:
            return False
        if _is_distinctive(line):
            return True
    return False
