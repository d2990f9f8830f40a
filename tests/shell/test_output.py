"""Bounded memory, exact slices."""

from __future__ import annotations

import pytest

from oh_jupyter.shell.output import MAX_BYTES, MAX_LINES, OutputBuffer


def test_everything_comes_out_once() -> None:
    buffer = OutputBuffer()
    assert not buffer
    buffer.append(b"one\ntw")
    buffer.append(b"o\n")
    assert buffer
    taken = buffer.take(final=False)
    assert (taken.data, taken.truncated) == (b"one\ntwo\n", False)
    assert buffer.take(final=True).data == b""


def test_last_lines_are_kept() -> None:
    buffer = OutputBuffer()
    for number in range(100_000):
        buffer.append(b"%d\n" % number)
    taken = buffer.take(final=True)
    lines = taken.data.split()
    assert taken.truncated
    assert (len(lines), lines[-1]) == (MAX_LINES, b"99999")
    buffer.append(b"".join(b"%d\n" % number for number in range(MAX_LINES + 1)))
    taken = buffer.take(final=True)
    assert taken.truncated
    assert taken.data.startswith(b"1\n")
    buffer.append(b"\n" * MAX_LINES)
    assert not buffer.take(final=True).truncated


def test_long_lines_are_bounded() -> None:
    buffer = OutputBuffer()
    chunk = b"x" * 65_536
    for _ in range(1_000):
        buffer.append(chunk)
        assert buffer._bytes <= MAX_BYTES + len(chunk)
    taken = buffer.take(final=True)
    assert taken.truncated
    assert len(taken.data) == MAX_BYTES


def test_incomplete_ends_wait_for_the_next_slice() -> None:
    for whole in ("é", "日", "😀", "\x1b[38;5;1m", "\x1b]0;title\x1b\\", "\x1b(B"):
        data = whole.encode()
        for cut in range(1, len(data)):
            buffer = OutputBuffer()
            buffer.append(b"a" + data[:cut])
            assert buffer.take(final=False).data == b"a", (whole, cut)
            buffer.append(data[cut:] + b"b")
            assert buffer.take(final=True).data == data + b"b"


def test_whole_ends_do_not_wait() -> None:
    buffer = OutputBuffer()
    for data in ("é".encode(), b"\x1b[m", b"\xff", b"\x80\x80\x80\x80\x80", b"x"):
        buffer.append(data)
        assert buffer.take(final=False).data == data


def test_line_of_its_own() -> None:
    buffer = OutputBuffer()
    buffer.append_line(b"first\n")
    buffer.append(b"partial")
    buffer.append_line(b"next\n")
    assert buffer.take(final=True).data == b"first\npartial\nnext\n"


@pytest.mark.parametrize("chunk_bytes", [10, 700, 5000])
def test_the_beginning_is_kept_however_the_output_arrives(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr("oh_jupyter.shell.output.MAX_KEPT_BYTES", 1000)
    output = b"".join(b"%d\n" % number for number in range(2 * MAX_LINES))
    buffer = OutputBuffer()
    buffer.keep_all()
    for start in range(0, len(output), chunk_bytes):
        buffer.append(output[start : start + chunk_bytes])
    whole = buffer.take(final=True, whole=True).data
    beginning, _, rest = whole.partition(b"\n[... ")
    lost, _, end = rest.partition(b" bytes were not kept ...]\n")
    assert beginning == output[:1000]
    assert output.endswith(end)
    assert int(lost) == len(output) - 1000 - len(end)
