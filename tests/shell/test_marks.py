"""Marks are found wherever the reads are cut, and only marks are."""

from __future__ import annotations

from oh_jupyter.shell.output.markers import Mark, MarkSplitter

TOKEN = "oh_00ff"
DATA = b"a\x1b]oh_00ff;b;1\x1b\\out\x1b[31m\x1b]oh_00fe;e;1\x1b\\\x1b]oh_00ff;e;1\x1b\\rest\x1b"


def split(pieces: list[bytes]) -> list[bytes | Mark]:
    """Split, and join adjacent output."""
    splitter = MarkSplitter(TOKEN)
    found: list[bytes | Mark] = []
    for item in [*(item for piece in pieces for item in splitter.split(piece)), splitter.rest()]:
        if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += item
        else:
            found.append(item)
    return found


def test_any_cut() -> None:
    expected = [
        b"a",
        Mark("b", "1"),
        b"out\x1b[31m\x1b]oh_00fe;e;1\x1b\\",
        Mark("e", "1"),
        b"rest\x1b",
    ]
    assert split([DATA]) == expected
    assert split([DATA[i : i + 1] for i in range(len(DATA))]) == expected
    for first in range(len(DATA)):
        assert split([DATA[:first], DATA[first:]]) == expected


def test_written_marks_are_read() -> None:
    for mark in (Mark("x", ""), Mark("s", "7")):
        assert split([MarkSplitter(TOKEN).write(mark)]) == [b"", mark, b""]
