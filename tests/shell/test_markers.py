"""Marks are found wherever the reads are cut, and only markers are."""

from __future__ import annotations

from oh_jupyter.shell.output import Marker, MarkerParser

TOKEN = "oh_00ff"
DATA = b"a\x1b]oh_00ff;b;1\x1b\\out\x1b[31m\x1b]oh_00fe;e;1\x1b\\\x1b]oh_00ff;e;1\x1b\\rest\x1b"


def split(pieces: list[bytes]) -> list[bytes | Marker]:
    """Split, and join adjacent output."""
    splitter = MarkerParser(TOKEN)
    items: list[bytes | Marker] = []
    for item in [*(item for piece in pieces for item in splitter.split(piece)), splitter.flush()]:
        if isinstance(item, bytes) and items and isinstance(items[-1], bytes):
            items[-1] += item
        else:
            items.append(item)
    return items


def test_any_cut() -> None:
    expected = [
        b"a",
        Marker("b", "1"),
        b"out\x1b[31m\x1b]oh_00fe;e;1\x1b\\",
        Marker("e", "1"),
        b"rest\x1b",
    ]
    assert split([DATA]) == expected
    assert split([DATA[i : i + 1] for i in range(len(DATA))]) == expected
    for first in range(len(DATA)):
        assert split([DATA[:first], DATA[first:]]) == expected


def test_written_marks_are_read() -> None:
    for marker in (Marker("x", ""), Marker("s", "7")):
        assert split([MarkerParser(TOKEN).write(marker)]) == [b"", marker, b""]
