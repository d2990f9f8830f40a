"""Terminal output as a person would see it."""

from __future__ import annotations

import os

import pytest

from oh_jupyter.shell.screen import render


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"a\r\nb\r\r\nc", "a\nb\nc"),
        (b"trailing  \t\n  leading", "trailing\n  leading"),
        (b"a\tb\n12345678\tc", "a       b\n12345678        c"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m\x1b[K", "red rgb"),
        (b"\x1b]0;title\x07x\x1b]8;;http://u\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"\x1b(B\x1b[?25l\x1b[?2004hx\x1b[?25h\x1b=\x1b>", "x"),
        (b" 10%\r 50%\r100%\n", "100%\n"),
        (b"long line\rshort\n", "shortline\n"),
        (b"long line\r\x1b[Kshort\n", "short\n"),
        (b"abc\b\bX\n", "aXc\n"),
        (b"ab\x07c\x00d\x7fe", "abcde"),
        (b"one\ntwo\n\x1b[2A\x1b[2KONE\n\x1b[1B", "ONE\ntwo\n"),
        (b"a: 1\nb: 1\n\x1b[2F\x1b[0Ka: 2\n\x1b[0Kb: 2\n", "a: 2\nb: 2\n"),
        (b"x\x1b[5Cy\x1b[3Dz", "x   z y"),
        (b"old\n\x1b[H\x1b[2J\x1b[3Jnew", "new\n"),
        (b"a\x1b[10Gb\x1b[2Gc", "ac       b"),
        (b"before\n\x1b[?1049h\x1b[H\x1b[2Jediting\x1b[?1049lafter", "before\nafter"),
        (b"before\n\x1b[?1049h\x1b[2;3Hediting", "\n  editing"),
        (b"abcdef\x1b[3D\x1b[2P|\x1b[1@|", "abc||"),
        (b"1\n2\n3\x1b[1;1H\x1b[L0", "0\n1\n2\n3"),
        (b"1\n2\n3\x1b[2;1H\x1b[M", "1\n3"),
        (b"\x1b[31", ""),
        ("日本\rx".encode(), "x 本"),
        ("日本\r\x1b[2Cx".encode(), "日x"),
        ("e\u0301a\r\x1b[1Cb".encode(), "e\u0301b"),
        (b"\xff\xfe ok \xe2\x82", "\ufffd\ufffd ok \ufffd"),
        ("ünïcödé\tx\u200b".encode(), "ünïcödé x\u200b"),
    ],
)
def test_render(data: bytes, text: str) -> None:
    assert render(data) == text


def test_long_lines_stay_whole() -> None:
    line = "x" * 100_000
    assert render(line.encode()) == line
    assert render(b"y\r" + line.encode()) == line


def test_window_scrolls() -> None:
    lines = "".join(f"{number}\n" for number in range(250))
    text = render(lines.encode() + b"\x1b[1;1Htop of the window\x1b[K")
    assert text.splitlines()[:151] == [str(number) for number in range(151)]
    assert text.splitlines()[151] == "top of the window"


def test_both_ways_agree_on_plain_text() -> None:
    text = "".join(f"line {number}\twith ünïcode 日本 \n" for number in range(500))
    fast = render(text.encode())
    slow = render(b"x\r" + text.encode())
    assert fast == slow


def test_noise_is_survived() -> None:
    for _ in range(20):
        text = render(os.urandom(20_000))
        assert not set(map(chr, range(32))) & set(text) - {"\n"}
