"""Shortened texts, for any text and limit."""

from __future__ import annotations

import random

import pytest

from oh_jupyter.text import first_line, plural, shorten


@pytest.mark.parametrize("seed", range(200))
def test_a_text_is_whole_or_starts_and_ends_as_before(seed: int) -> None:
    numbers = random.Random(seed)
    text = "".join(numbers.choices("ab \n{}…ü😀", k=numbers.randrange(60)))
    limit = numbers.randrange(60)
    start = shorten(text, limit, marker="<{omitted}>")
    ends = shorten(text, limit, keep="ends", marker="<{omitted}>")
    if len(text) <= limit:
        assert start == ends == text
        return
    assert start == f"{text[:limit]}<{len(text) - limit}>"
    half = limit // 2
    assert ends == f"{text[:half]}<{len(text) - 2 * half}>{text[::-1][:half][::-1]}"
    assert shorten(text, limit, marker="") == text[:limit]


@pytest.mark.parametrize(
    ("text", "limit", "options", "shown"),
    [
        ("", 0, {}, ""),
        ("abc", 3, {}, "abc"),
        ("abcd", 3, {}, "abc…"),
        ("abcd", 0, {}, "…"),
        ("abcd", 0, {"keep": "ends"}, "…"),
        ("abcd", 1, {"keep": "ends"}, "…"),
        ("abcdef", 5, {"keep": "ends", "marker": "[{omitted}]"}, "ab[2]ef"),
        ("abcd", 1, {"marker": "{}{0}{text}"}, "a{}{0}{text}"),
        ("{omitted}{omitted}", 9, {"marker": ""}, "{omitted}"),
    ],
)
def test_edges(text: str, limit: int, options: dict[str, str], shown: str) -> None:
    assert shorten(text, limit, **options) == shown  # type: ignore[arg-type]


def test_counts_have_their_nouns() -> None:
    assert [plural(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", ""), ("\n a \n", "a"), ("a\nb", "a …"), ("a \r\nb", "a …"), ("\n\na\n\nb\n", "a …")],
)
def test_the_first_line_marks_further_ones(text: str, shown: str) -> None:
    assert first_line(text) == shown
