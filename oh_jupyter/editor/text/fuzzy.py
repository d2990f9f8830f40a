"""Fuzzy search for the text that an absent ``old_str`` probably refers to."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice, repeat
from operator import contains

from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.text import plural

_MAX_LINES = 200  # of old_str; nobody repairs a longer one by hand
_MAX_WORDS = 40  # of a line that is searched for
_MAX_CANDIDATES = 400  # places that are compared closely
_MAX_HEAD_LINES = 50 * _MAX_CANDIDATES  # of the file, if no line occurs exactly
_MAX_SEARCHED = 8  # lines; splitting the text takes less time than searching for more
_MAX_COMPARED_PAIRS = 1_000_000  # of characters
_FORMS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\xb4",
    '"': "\u201c\u201d\u201e\u201f\u2033\xab\xbb",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "...": "\u2026",
    "": "\u200b\u200c\u200d\u2060\ufeff",
}
_WORD = re.compile(r"\w+")

ASCII = {ord(character): plain for plain, others in _FORMS.items() for character in others}
"""Translation of typographic quotes, dashes and spaces for ``str.translate``."""

_DIFFERENCES: tuple[tuple[Callable[[str], str], str], ...] = (
    (str.rstrip, "blanks at line ends"),
    (str.strip, "indentation"),
    (lambda line: " ".join(line.split()), "blanks"),
    (lambda line: line.translate(ASCII), "the kind of quotes, dashes or spaces"),
    (lambda line: unicodedata.normalize("NFC", line), "how accented letters are encoded"),
    (str.casefold, "upper and lower case"),
)

# A line number as in a view or other tools: followed by a tab, an arrow, a bar or a colon.
_NUMBER = re.compile(r"^ *(\d+)(?:\t|\u2192|\| ?|: )", re.MULTILINE)


def explain_absence(text: str, old: str, new: str, *, name: str = "old_str") -> str:
    """Suggest the place most similar to an absent text; "" if there is none."""
    if new.strip() and text.count(new) == 1:
        line = text.count("\n", 0, text.index(new)) + 1
        subject = "The text of `new_str`" if name == "old_str" else "The new text"
        return f"\n{subject} is already in line {line}: this edit may have been made before."
    subject = "`old_str`" if name == "old_str" else f"The text of the {name}"
    unnumbered = _without_numbers(old)
    if unnumbered != old:
        note = f"\n{subject} contains the line numbers of a view; "
        if unnumbered in text:
            where = _lines(*_span(text, unnumbered))
            return f"{note}it appears without them, in {where}. Remove them and try again."
        return f"{note}remove them.{_closest_match(text, unnumbered, name)}"
    for changed, reason in _other_spellings(old):
        if changed != old and changed.strip() and changed in text:
            where = _lines(*_span(text, changed))
            return f"\n{subject} {reason} The file has the intended text in {where}."
    if where := _equivalent_lines(text, old):
        return f"\n{subject} {_form_difference(text, old)} The file has the same text in {where}."
    return _closest_match(text, old, name)


def _without_numbers(old: str) -> str:
    """Remove line numbers, if every line has one and they are consecutive."""
    lines = old.strip("\n").split("\n")
    matches = [_NUMBER.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match is not None]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return old
    return "\n".join(_NUMBER.sub("", line) for line in lines)


def _other_spellings(old: str) -> Iterator[tuple[str, str]]:
    """Yield the text without common excess escapes, and a description."""
    unescaped = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    yield unescaped, "is escaped once too often: it has backslashes before n, t or quotes."
    yield html.unescape(old), "has HTML entities, such as &lt; or &amp;."


def _equivalent_lines(text: str, old: str) -> str:
    """Return the lines that have a text with its accented letters encoded differently, or ""."""
    if old.isascii() or not old.strip():
        return ""
    composed, whole = (unicodedata.normalize("NFC", each) for each in (old, text))
    return _lines(*_span(whole, composed)) if composed in whole else ""


def _form_difference(text: str, old: str) -> str:
    """Say how a text and the file encode accented letters, and what to do."""
    has, needs = (
        ("composed (NFC)", "decomposed (NFD)")
        if unicodedata.is_normalized("NFC", old)
        else (
            "decomposed (NFD)",
            "composed (NFC)" if unicodedata.is_normalized("NFC", text) else "",
        )
    )
    file = f"are {needs}" if needs else "have another Unicode form"
    return (
        f"differs only in how accented letters are encoded: it has {has} letters, and those of the "
        f"file {file}. Replace whole lines by their numbers, or edit the file with Python and "
        "unicodedata.normalize."
    )


def _span(text: str, part: str) -> tuple[int, int]:
    first = text.count("\n", 0, text.index(part)) + 1
    return first, first + part.rstrip("\n").count("\n")


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _closest_match(text: str, old: str, name: str) -> str:
    target = old.strip("\n").split("\n")
    if len(target) > _MAX_LINES or not old.strip():
        return ""
    match = closest(text, target)
    if match is None:
        return ""
    start, _ = match
    similar = text.split("\n", start + len(target))[start : start + len(target)]
    where = _lines(start + 1, start + len(similar))
    compared = _compare(target, similar, name)
    return f"\nThe closest match is in {where}. {_difference(target, similar)}\n{compared}"


def _normal(line: str) -> str:
    return " ".join(line.translate(ASCII).split()).casefold()


def _squeezed(text: str) -> bytes:
    """Return a text without case and blanks."""
    # Bytes are deleted several times as fast as characters.
    return _folded(text).encode("utf-8", "surrogatepass").translate(None, b" \t")


def _folded(text: str) -> str:
    # For ASCII, lower() does the same as casefold() in a fraction of the time.
    return text.lower() if text.isascii() else text.translate(ASCII).casefold()


def closest(text: str, target: list[str]) -> tuple[int, float] | None:
    """Find the lines of a text most similar to others; return the first and the similarity."""
    squeezed = _squeezed("\n".join(target)).split(b"\n")
    positions = _positions({line for line in squeezed if line}, _squeezed(text))
    votes = Counter(
        number - index
        for index, line in enumerate(squeezed)
        for number in positions.get(line, [])[:_MAX_CANDIDATES]
        if number >= index
    )
    plain = [_normal(line) for line in target]
    starts = [start for start, _ in votes.most_common(5)] or _similar_starts(text, plain)
    lines = text.split("\n", max(starts, default=0) + len(plain))
    scored = [
        (_similarity([_normal(line) for line in lines[start : start + len(plain)]], plain), -start)
        for start in starts
    ]
    best, start = max(scored, default=(0.0, 0))
    return (-start, best) if best >= 0.6 else None


def _positions(wanted: set[bytes], text: bytes) -> dict[bytes, list[int]]:
    """Return the numbers of the lines that equal each wanted one."""
    if len(wanted) <= _MAX_SEARCHED:
        framed = b"\n%b\n" % text
        return {line: list(islice(_numbers(line, framed), _MAX_CANDIDATES)) for line in wanted}
    positions: dict[bytes, list[int]] = {line: [] for line in wanted}
    lines = text.split(b"\n")
    if not wanted.isdisjoint(lines):  # a third of the time of the loop
        for number, line in enumerate(lines):
            if line in positions:
                positions[line].append(number)
    return positions


def _numbers(line: bytes, framed: bytes) -> Iterator[int]:
    """Yield the numbers of the lines that equal one, in a text between two newlines."""
    number = counted = 0
    wanted = b"\n%b\n" % line
    at = framed.find(wanted)
    while at >= 0:
        number += framed.count(b"\n", counted, at)
        counted = at
        yield number
        at = framed.find(wanted, at + len(wanted) - 1)  # one newline may end and start lines


def _similar_starts(text: str, plain: list[str]) -> list[int]:
    """Search for the longest target line, when no target line occurs exactly."""
    index = max(range(len(plain)), key=lambda i: len(plain[i]))
    words = Counter(_WORD.findall(plain[index]))
    distinct = list(words)[:_MAX_WORDS]
    if not distinct:
        return []
    head = text.split("\n", _MAX_HEAD_LINES)[:_MAX_HEAD_LINES]
    searched = _folded("\n".join(head)).split("\n")
    # Counting words that occur anywhere in a line is quick, and chooses those to look at.
    occurs = [map(contains, searched, repeat(word)) for word in distinct]
    rough = list(map(sum, zip(*occurs, strict=True)))
    likely = nlargest(_MAX_CANDIDATES, range(len(searched)), key=rough.__getitem__)
    shared = {
        number: (words & Counter(_WORD.findall(searched[number]))).total() for number in likely
    }
    best = sorted(filter(shared.get, likely), key=lambda number: (-shared[number], number))[:20]
    return [number - index for number in best if number >= index]


def _similarity(some: list[str], other: list[str]) -> float:
    """Return the share of characters that two lists of lines have in common."""
    total = sum(map(len, some)) + sum(map(len, other))
    common = total
    for i1, i2, j1, j2 in changed_ranges(some, other):
        text, goal = "".join(some[i1:i2]), "".join(other[j1:j2])
        common += 2 * _common_characters(text, goal) - len(text) - len(goal)
    return common / total if total else 0.0


def _common_characters(some: str, other: str) -> int:
    if len(some) * len(other) <= _MAX_COMPARED_PAIRS:
        blocks = SequenceMatcher(None, some, other, autojunk=False).get_matching_blocks()
        return sum(size for _, _, size in blocks)
    # The matcher would take seconds; comparing words is good enough for long texts.
    words, others = re.findall(r"\w+|\W", some), re.findall(r"\w+|\W", other)
    changes = changed_ranges(words, others)
    return len(some) - sum(sum(map(len, words[i1:i2])) for i1, i2, _, _ in changes)


def _difference(target: list[str], similar: list[str]) -> str:
    """Name the only kind of difference, or the number of differing lines."""
    for normalise, kind in _DIFFERENCES:
        if list(map(normalise, target)) == list(map(normalise, similar)):
            return f"It differs only in {kind}:"
    different = sum(a != b for a, b in zip(target, similar, strict=False))
    return f"It differs in {plural(different + abs(len(target) - len(similar)), 'line')}:"


def _compare(target: list[str], similar: list[str], name: str) -> str:
    """Show the differing lines, with visible tabs and trailing blanks."""
    lines = []
    for i1, i2, j1, j2 in changed_ranges(target, similar):
        lines += [f"- {name + ':':8} {_visible(line)}" for line in target[i1:i2]]
        lines += [f"+ {'file:':8} {_visible(line)}" for line in similar[j1:j2]]
    return "\n".join(lines[:40])


def _visible(line: str) -> str:
    body = line.rstrip()
    return (body + "·" * (len(line) - len(body))).replace("\t", "→")
