"""Truncation of long results."""

from __future__ import annotations

from oh_jupyter.mcp_tools.results import MAX_TEXT_CHARS, bounded, image, result, text

PICTURE = image("data:image/png;base64,AAAA")


def texts(answer: dict) -> str:
    return "".join(block["text"] for block in answer["content"] if block["type"] == "text")


def test_a_result_that_fits_is_unchanged() -> None:
    whole = result(text("x" * 10_000), PICTURE, text("y" * 20_000))
    assert bounded(whole, "Ask for less.") == whole


def test_the_middle_is_left_out_between_lines_and_named() -> None:
    lines = [f"line {number}" for number in range(1, 10_001)]
    whole = "\n".join(lines)
    shortened = texts(bounded(result(text(whole)), "Ask for less."))
    assert len(shortened) <= MAX_TEXT_CHARS
    first, _, rest = shortened.partition("[... ")
    note, _, last = rest.partition(" ...]\n")
    shown = [*first.splitlines(), *last.splitlines()]
    assert set(shown) <= set(lines)
    begins, ends = len(first.splitlines()) + 1, 10_000 - len(last.splitlines())
    assert f"lines {begins} to {ends} of this text" in note
    assert f"{len(whole) - len(first) - len(last)} of " in note
    assert note.endswith("Ask for less.")


def test_one_long_line_is_cut_where_it_must_be() -> None:
    shown = texts(bounded(result(text("a" * 50_000 + "b" * 50_000)), "Ask for less."))
    assert len(shown) <= MAX_TEXT_CHARS
    assert shown.startswith("a" * 10_000)
    assert shown.endswith("b" * 10_000)
    assert "lines" not in shown


def test_pictures_and_errors_stay() -> None:
    blocks = [text(f"{number}" * 10_000) for number in range(9)]
    shortened = bounded(result(*blocks[:5], PICTURE, *blocks[5:], is_error=True), "Ask for less.")
    assert shortened["isError"]
    assert PICTURE in shortened["content"]
    shown = texts(shortened)
    assert len(shown) <= MAX_TEXT_CHARS
    assert shown.count("[...") == 1
    assert shown.startswith("0" * 10_000)
    assert shown.endswith("8" * 10_000)
