"""What an agent probably meant when its ``old_str`` is not in the file."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

from oh_jupyter.editor.messages import plural

__all__ = ["explain_absence"]

_MAX_LINES = 200  # of old_str; nobody repairs a longer one by hand
_MAX_CANDIDATES = 400  # places that are compared closely
_QUOTES = str.maketrans(
    "\u2018\u2019\u201a\u201c\u201d\u201e\xab\xbb\u2013\u2014\u2011\xa0", "'''" + '"""""' + "--- "
)
_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)


def explain_absence(text: str, old: str, new: str) -> str:
    """Find the place that is most like the text that was looked for.

    Args:
        text: The file.
        old: The text that is not in it.
        new: What it was to be replaced by.

    Returns:
        Sentences to append to the error; "" if nothing is similar.
    """
    if new.strip() and text.count(new) == 1:
        line = text.count("\n", 0, text.index(new)) + 1
        return (
            f"\nThe text of `new_str` is already there, at line {line}: this edit may have been "
            "made before."
        )
    unnumbered = _NUMBER.sub("", old)
    if unnumbered != old and unnumbered in text:
        return (
            "\n`old_str` contains the line numbers of a view; it appears without them. "
            "Remove them and try again."
        )
    wanted = old.strip("\n").split("\n")
    if len(wanted) > _MAX_LINES or not old.strip():
        return ""
    lines = text.split("\n")
    start = _closest(lines, wanted)
    if start is None:
        return ""
    found = lines[start : start + len(wanted)]
    last = start + len(found)
    where = f"line {last}" if len(found) == 1 else f"lines {start + 1}-{last}"
    return f"\nThe closest match is in {where}. {_kind(wanted, found)}\n{_compare(wanted, found)}"


def _normal(line: str) -> str:
    return " ".join(line.translate(_QUOTES).split()).casefold()


def _closest(lines: list[str], wanted: list[str]) -> int | None:
    """Find the first line of the window that is most like the wanted lines."""
    plain = [_normal(line) for line in wanted]
    positions: dict[str, list[int]] = {line: [] for line in plain if line}
    normal = [_normal(line) for line in lines]
    for number, line in enumerate(normal):
        if line in positions:
            positions[line].append(number)
    votes = Counter(
        number - index
        for index, line in enumerate(plain)
        for number in positions.get(line, [])[:_MAX_CANDIDATES]
        if number >= index
    )
    starts = [start for start, _ in votes.most_common(5)] or _similar_starts(normal, plain)
    windows = {start: "\n".join(normal[start : start + len(plain)]) for start in starts}
    goal = "\n".join(plain)
    scored = [(_ratio(window, goal), -start) for start, window in windows.items()]
    best, start = max(scored, default=(0.0, 0))
    return -start if best >= 0.6 else None


def _similar_starts(normal: list[str], plain: list[str]) -> list[int]:
    """Look for the most telling line of the wanted ones where none is there exactly."""
    index = max(range(len(plain)), key=lambda i: len(plain[i]))
    words = Counter(re.findall(r"\w+", plain[index]))
    shared = (
        (sum((words & Counter(re.findall(r"\w+", line))).values()), number)
        for number, line in enumerate(normal[: 50 * _MAX_CANDIDATES])
        if line
    )
    best = sorted((-count, number) for count, number in shared if count)[:20]
    return [number - index for _, number in best if number >= index]


def _ratio(some: str, other: str) -> float:
    return SequenceMatcher(None, some, other, autojunk=False).ratio() if len(some) < 20_000 else 0.0


def _kind(wanted: list[str], found: list[str]) -> str:
    """Name what differs, if that can be said in a word."""

    def same(normalise: object) -> bool:
        assert callable(normalise)
        return [normalise(line) for line in wanted] == [normalise(line) for line in found]

    if same(str.rstrip):
        return "It differs only in blanks at line ends:"
    if same(str.strip):
        return "It differs only in indentation:"
    if same(lambda line: " ".join(line.split())):
        return "It differs only in blanks:"
    if same(lambda line: line.translate(_QUOTES)):
        return "It differs only in the kind of quotes, dashes or spaces:"
    if same(str.casefold):
        return "It differs only in upper and lower case:"
    different = sum(a != b for a, b in zip(wanted, found, strict=False))
    return f"It differs in {plural(different + abs(len(wanted) - len(found)), 'line')}:"


def _compare(wanted: list[str], found: list[str]) -> str:
    """Show the lines that differ, with blanks at their ends and tabs made visible."""
    matcher = SequenceMatcher(None, wanted, found, autojunk=False)
    lines = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            lines += [f"- old_str: {_visible(line)}" for line in wanted[i1:i2]]
            lines += [f"+ file:    {_visible(line)}" for line in found[j1:j2]]
    return "\n".join(lines[:40])


def _visible(line: str) -> str:
    body = line.rstrip()
    return (body + "·" * (len(line) - len(body))).replace("\t", "→")
