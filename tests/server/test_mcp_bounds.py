"""How much of a long result is shown."""

from __future__ import annotations

from oh_jupyter.mcp_tools.results import MAX_TEXT_CHARS, bounded, image, result, text

PICTURE = image("data:image/png;base64,AAAA")


def texts(found: dict) -> str:
    return "".join(block["text"] for block in found["content"] if block["type"] == "text")


def test_what_fits_is_left_as_it_is() -> None:
    found = result(text("x" * 10_000), PICTURE, text("y" * 20_000))
    assert bounded(found, "Ask for less.") == found


def test_the_middle_is_left_out_between_lines_and_named() -> None:
    lines = [f"line {number}" for number in range(1, 10_001)]
    whole = "\n".join(lines)
    told = texts(bounded(result(text(whole)), "Ask for less."))
    assert len(told) <= MAX_TEXT_CHARS
    first, _, rest = told.partition("[... ")
    note, _, last = rest.partition(" ...]\n")
    shown = [*first.splitlines(), *last.splitlines()]
    assert set(shown) <= set(lines)
    begins, ends = len(first.splitlines()) + 1, 10_000 - len(last.splitlines())
    assert f"lines {begins} to {ends} of this text" in note
    assert f"{len(whole) - len(first) - len(last)} of " in note
    assert note.endswith("Ask for less.")


def test_one_long_line_is_cut_where_it_must_be() -> None:
    told = texts(bounded(result(text("a" * 50_000 + "b" * 50_000)), "Ask for less."))
    assert len(told) <= MAX_TEXT_CHARS
    assert told.startswith("a" * 10_000)
    assert told.endswith("b" * 10_000)
    assert "lines" not in told


def test_pictures_and_errors_stay() -> None:
    blocks = [text(f"{number}" * 10_000) for number in range(9)]
    found = bounded(result(*blocks[:5], PICTURE, *blocks[5:], is_error=True), "Ask for less.")
    assert found["isError"]
    assert PICTURE in found["content"]
    told = texts(found)
    assert len(told) <= MAX_TEXT_CHARS
    assert told.count("[...") == 1
    assert told.startswith("0" * 10_000)
    assert told.endswith("8" * 10_000)
