"""Cost model of the readings of a draft."""

from __future__ import annotations

import re
from itertools import accumulate

__all__ = ["defined_names", "is_cheapest", "is_definition", "is_distinctive"]

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


def is_distinctive(line: str) -> bool:
    """Whether a line is hardly met twice by chance."""
    return _own_letters(line) >= _MIN_LETTERS or is_definition(line)


def _own_letters(line: str) -> int:
    words = re.findall(r"[^\W_]+", line)
    return sum(len(word) for word in words if not _GENERIC.fullmatch(word))


def is_definition(line: str) -> bool:
    """Whether a line begins a function, a class or the like, in a common language."""
    return _DEFINITION.match(line) is not None


def defined_names(lines: list[str]) -> list[str]:
    """Names of the functions, classes and the like that lines define, each once."""
    found = (_DEFINITION.match(line) for line in lines)
    return list(dict.fromkeys(match["name"] for match in found if match is not None))


def is_cheapest(
    original: list[str], blocks: list[list[str]], runs: tuple[tuple[int, int], ...]
) -> bool:
    """Whether every other reading of a draft costs more.

    The others are free to take any run of lines for a marker, and any shown line for a new
    one or one of the file. Each costs what it adds and what it drops; a shown line that is
    also in the file is dear to add, and the head of a definition dear to drop.
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
    if is_definition(line):
        return _COST_KNOWN_HEADER  # nobody defines the same thing twice
    return _COST_KNOWN if is_distinctive(line) else _COST_SEEN


def _cost_to_drop(line: str) -> int:
    if not line.strip():
        return _COST_BLANK
    return _COST_DROPPED_HEADER if is_definition(line) else _COST_LINE


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
