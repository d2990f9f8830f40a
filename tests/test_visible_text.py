"""Text of others in which every character is seen."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from oh_jupyter.text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf /x #\x1b[2K\x1b[1G", r"rm -rf /x #\x1b[2K\x1b[1G"),
        ("a\rb\x08c\x9bd\x7f", r"a\rb\x08c\x9bd\x7f"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("a\u200bb\u200dc\ufeffd\u00ade", r"a\u200bb\u200dc\ufeffd\xade"),
        ("a\u00a0b\u3000c\u2028d", r"a\xa0b\u3000c\u2028d"),
        ("\u3164\u115f\ufe0f\U000e0101\U000e0041", r"\u3164\u115f\ufe0f\U000e0101\U000e0041"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_invisible_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize("text", ["", "plain", "häß 日本 עברית", "'\"\\ \\x1b", "👩\n\tline\n"])
def test_the_rest_stays(text: str) -> None:
    assert visible(text) == text


def test_no_control_and_no_format_character_is_left() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {char for char in visible(every) if unicodedata.category(char) in hidden}
    assert left == {"\n", "\t"}
