"""Fuzzy search for what an ``old_str`` probably meant that is not in the file."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from oh_jupyter.editor.messages import plural
from oh_jupyter.editor.text.line_diff import changed_ranges

_MAX_LINES = 200  # of old_str; nobody repairs a longer one by hand
_MAX_CANDIDATES = 400  # places that are compared closely
_MAX_COMPARED_PAIRS = 1_000_000  # of characters
_FORMS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\xb4",
    '"': "\u201c\u201d\u201e\u201f\u2033\xab\xbb",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "...": "\u2026",
    "": "\u200b\u200c\u200d\u2060\ufeff",
}
ASCII = {ord(sign): plain for plain, signs in _FORMS.items() for sign in signs}
"""For ``str.translate``: typographic quotes, dashes and spaces as one types them."""

_DIFFERENCES: tuple[tuple[Callable[[str], str], str], ...] = (
    (str.rstrip, "blanks at line ends"),
    (str.strip, "indentation"),
    (lambda line: " ".join(line.split()), "blanks"),
    (lambda line: line.translate(ASCII), "the kind of quotes, dashes or spaces"),
    (lambda line: unicodedata.normalize("NFC", line), "how accented letters are encoded"),
    (str.casefold, "upper and lower case"),
)

# A number as in a view, or as other tools put it: with an arrow, a bar or a colon after it.
_NUMBER = re.compile(r"^ *(\d+)(?:\t|\u2192|\| ?|: )", re.MULTILINE)


def explain_absence(text: str, old: str, new: str, *, name: str = "old_str") -> str:
    """Hint at the place that is most like a text that was not found; "" if there is none."""
    if new.strip() and text.count(new) == 1:
        line = text.count("\n", 0, text.index(new)) + 1
        what = "The text of `new_str`" if name == "old_str" else "The new text"
        return f"\n{what} is already there, at line {line}: this edit may have been made before."
    called = "`old_str`" if name == "old_str" else f"The text of the {name}"
    unnumbered = _without_numbers(old)
    if unnumbered != old:
        note = f"\n{called} contains the line numbers of a view; "
        if unnumbered in text:
            where = _lines(*_span(text, unnumbered))
            return f"{note}it appears without them, in {where}. Remove them and try again."
        return f"{note}remove them.{_closest_match(text, unnumbered, name)}"
    for changed, how in _other_spellings(old):
        if changed != old and changed.strip() and changed in text:
            where = _lines(*_span(text, changed))
            return f"\n{called} {how} In {where} the file has it as it is meant."
    return _closest_match(text, old, name)


def _without_numbers(old: str) -> str:
    """Take off the numbers of lines, if all lines have one and they count up."""
    lines = old.strip("\n").split("\n")
    matches = [_NUMBER.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match is not None]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return old
    return "\n".join(_NUMBER.sub("", line) for line in lines)


def _other_spellings(old: str) -> Iterator[tuple[str, str]]:
    """What escaping too often makes of a text, undone."""
    unescaped = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    yield unescaped, "is escaped once too often: it has backslashes before n, t or quotes."
    yield html.unescape(old), "has HTML entities, such as &lt; or &amp;."


def _span(text: str, found: str) -> tuple[int, int]:
    first = text.count("\n", 0, text.index(found)) + 1
    return first, first + found.rstrip("\n").count("\n")


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _closest_match(text: str, old: str, name: str) -> str:
    wanted = old.strip("\n").split("\n")
    if len(wanted) > _MAX_LINES or not old.strip():
        return ""
    lines = text.split("\n")
    found_at = closest(lines, wanted)
    if found_at is None:
        return ""
    start, _ = found_at
    found = lines[start : start + len(wanted)]
    where = _lines(start + 1, start + len(found))
    compared = _compare(wanted, found, name)
    return f"\nThe closest match is in {where}. {_kind(wanted, found)}\n{compared}"


def _normal(line: str) -> str:
    return " ".join(line.translate(ASCII).split()).casefold()


def closest(lines: list[str], wanted: list[str]) -> tuple[int, float] | None:
    """Find the lines that are most like others."""
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
    scored = [(_ratio(normal[start : start + len(plain)], plain), -start) for start in starts]
    best, start = max(scored, default=(0.0, 0))
    return (-start, best) if best >= 0.6 else None


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


def _ratio(some: list[str], other: list[str]) -> float:
    """Share of the characters that two lists of lines have in common."""
    total = sum(map(len, some)) + sum(map(len, other))
    alike = total
    for i1, i2, j1, j2 in changed_ranges(some, other):
        text, goal = "".join(some[i1:i2]), "".join(other[j1:j2])
        alike += 2 * _common_characters(text, goal) - len(text) - len(goal)
    return alike / total if total else 0.0


def _common_characters(some: str, other: str) -> int:
    if len(some) * len(other) <= _MAX_COMPARED_PAIRS:
        blocks = SequenceMatcher(None, some, other, autojunk=False).get_matching_blocks()
        return sum(size for _, _, size in blocks)
    # The matcher takes seconds; words in a row are as telling where there are so many.
    words, others = re.findall(r"\w+|\W", some), re.findall(r"\w+|\W", other)
    kept = changed_ranges(words, others)
    changed = sum(sum(map(len, words[i1:i2])) for i1, i2, _, _ in kept)
    return len(some) - changed


def _kind(wanted: list[str], found: list[str]) -> str:
    """Name what differs, if that can be said in a word."""
    for normalise, what in _DIFFERENCES:
        if list(map(normalise, wanted)) == list(map(normalise, found)):
            return f"It differs only in {what}:"
    different = sum(a != b for a, b in zip(wanted, found, strict=False))
    return f"It differs in {plural(different + abs(len(wanted) - len(found)), 'line')}:"


def _compare(wanted: list[str], found: list[str], name: str) -> str:
    """Show the lines that differ, with blanks at their ends and tabs made visible."""
    lines = []
    for i1, i2, j1, j2 in changed_ranges(wanted, found):
        lines += [f"- {name + ':':8} {_visible(line)}" for line in wanted[i1:i2]]
        lines += [f"+ {'file:':8} {_visible(line)}" for line in found[j1:j2]]
    return "\n".join(lines[:40])


def _visible(line: str) -> str:
    body = line.rstrip()
    return (body + "·" * (len(line) - len(body))).replace("\t", "→")
