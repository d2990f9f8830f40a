"""A cell's outputs in order, as an agent reads them."""

from __future__ import annotations

from typing import Any

import pytest

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.cells.outputs import (
    MAX_HEAD_CHARS,
    OutputCollector,
    truncate_middle,
    truncation_notice,
)
from oh_jupyter.mcp_tools.results import cell_outputs


def collected(*messages: tuple[str, dict]) -> OutputCollector:
    outputs = OutputCollector()
    for msg_type, content in messages:
        outputs.add_message(msg_type, content)
    return outputs


def shown(**data: str) -> dict:
    return {"data": {name.replace("_", "/"): value for name, value in data.items()}}


def test_streams_join_and_displays_stand_on_lines_of_their_own() -> None:
    outputs = collected(
        ("stream", {"name": "stdout", "text": "a"}),
        ("stream", {"name": "stderr", "text": "b"}),
        ("display_data", shown(text_plain="<Figure>")),
        ("execute_result", shown(text_plain="2")),
        ("stream", {"name": "stdout", "text": "end"}),
    )
    assert outputs.result().text == "ab\n<Figure>\n2\nend"


def test_a_picture_in_two_formats_is_one_picture() -> None:
    outputs = collected(("display_data", shown(image_png="cG5n\n", image_jpeg="anBn")))
    assert outputs.result().image_urls == ["data:image/png;base64,cG5n"]


def test_updates_stay_in_place_and_clear_output_can_wait() -> None:
    def display(text: str) -> dict:
        return {**shown(text_plain=text), "transient": {"display_id": "d"}}

    updated = collected(
        ("display_data", display("old")),
        ("stream", {"name": "stdout", "text": "after\n"}),
        ("update_display_data", display("new")),
    )
    assert updated.result().text == "new\nafter\n"
    waiting = collected(
        ("stream", {"name": "stdout", "text": "first"}), ("clear_output", {"wait": True})
    )
    assert waiting.result().text == "first"
    waiting.add_stream("second")
    assert waiting.result().text == "second"


def test_control_sequences_go_whatever_their_form() -> None:
    coloured = "\x1b[38;5;12mblue\x1b[m \x1b[2Kline \x1b]8;;http://x\x07link\x1b]8;;\x07"
    assert strip_ansi(coloured) == "blue line link"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\r 0%\r 50%\r100%\n", "100%\n"),
        ("long\rab", "abng"),
        ("1 %\b\b2", "12%"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("\r\x1b[32m 1%\x1b[0m\r\x1b[32m22%\x1b[0m", "22%"),
        ("loading\r\x1b[Kdone", "done"),
        ("outer 1\ninner 1\x1b[A\router 2\n\rinner 2", "outer 2\ninner 2"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_a_progress_bar_is_its_last_frame(printed: str, shown: str) -> None:
    for size in (1, 3, len(printed)):
        outputs = OutputCollector()
        for start in range(0, len(printed), size):
            outputs.add_stream(printed[start : start + size], "stderr")
        assert outputs.result().text == shown


OBJECT = "<IPython.core.display.HTML object>"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"text/html": "<b>bold</b> &amp; <i>it</i>", "text/plain": OBJECT}, "bold & it"),
        (
            {
                "text/html": "<style>th {x}</style><table><tr><th>a</th><th>b</th></tr>"
                "<tr><td>1</td>\n<td>2</td></tr></table><ul><li>one</li><li>two</li></ul>",
                "text/plain": "<pandas.io.formats.style.Styler at 0x7f00>",
            },
            "a | b\n1 | 2\n- one\n- two",
        ),
        ({"text/markdown": "# Head\n*x*", "text/plain": "<X object>"}, "# Head\n*x*"),
        ({"application/json": {"a": [1]}, "text/plain": "<X object>"}, '{"a": [1]}'),
        ({"text/latex": "$x$", "text/plain": "<X object>"}, "$x$"),
        ({"text/html": "<p>rich</p>", "text/plain": "   a\n0  1"}, "   a\n0  1"),
        ({"text/html": "<script>x()</script>", "text/plain": OBJECT}, OBJECT),
        ({"image/svg+xml": "<svg><text>node</text></svg>", "text/plain": "<S object>"}, "node"),
    ],
)
def test_a_display_is_text_that_an_agent_can_read(data: dict[str, Any], shown: str) -> None:
    outputs = OutputCollector()
    outputs.add_display(data)
    result = outputs.result()
    assert result.text == shown
    assert result.notebook_outputs[0]["data"] == data
    stored = {"cell_type": "code", "source": "", "outputs": result.notebook_outputs}
    assert cell_outputs(stored)[0] == [shown]


def test_a_long_json_display_is_bounded() -> None:
    outputs = OutputCollector()
    outputs.add_display({"application/json": list(range(100_000)), "text/plain": "<J object>"})
    assert len(outputs.result().text) < 11_000


@pytest.mark.parametrize("cycle", [("f",), ("f", "g"), ("f", "f", "g")])
def test_an_endless_recursion_is_shown_once(cycle: tuple[str, ...]) -> None:
    frames = [f"Cell In[1], in {name}(n)\n----> 1 {name}(n)" for name in cycle]
    outputs = OutputCollector()
    outputs.add_error(["head\n", *(f"{frame}\n" for frame in frames * 300), "RecursionError: deep"])
    text = outputs.result().text
    assert len(text) < 500
    assert all(frame in text for frame in frames)
    assert "299 more times" in text
    assert text.endswith("RecursionError: deep\n")
    assert len(outputs.result().notebook_outputs[0]["traceback"]) == 300 * len(cycle) + 2


def test_a_long_progress_bar_leaves_nothing_out() -> None:
    outputs = OutputCollector()
    outputs.add_stream("before\n")
    for step in range(100_000):
        outputs.add_stream(f"\r{step:6}/100000 [{'#' * 60}]", "stderr")
    assert outputs.last_lines() == f" 99999/100000 [{'#' * 60}]"
    result = outputs.result()
    assert result.text == f"before\n 99999/100000 [{'#' * 60}]"
    assert [output["text"] for output in result.notebook_outputs] == result.text.splitlines(True)


@pytest.mark.thorough
def test_of_very_much_text_both_ends_are_kept() -> None:
    outputs = OutputCollector()
    for number in range(100_000):
        outputs.add_stream(f"line {number:06} {'x' * 88}\n", ("stdout", "stderr")[number % 2])
    result = outputs.result()
    assert result.text.startswith("line 000000 ")
    assert result.text.endswith(f"line 099999 {'x' * 88}\n")
    remaining = len(result.text.replace(truncation_notice(result.omitted_chars), ""))
    assert remaining + result.omitted_chars == 100_000 * 101
    assert remaining < 3 * MAX_HEAD_CHARS
    stored = "".join(output["text"] for output in result.notebook_outputs)
    assert stored == result.text


def test_a_text_in_one_piece_is_cut_too() -> None:
    many = MAX_HEAD_CHARS
    outputs = collected(
        ("stream", {"name": "stdout", "text": "a" + "x" * 5 * MAX_HEAD_CHARS + "z"}),
        (
            "error",
            {"ename": "E", "evalue": "v" * many, "traceback": ["t" * many]},
        ),
    )
    result = outputs.result()
    assert result.text[0] == "a"
    assert result.omitted_chars > 2 * MAX_HEAD_CHARS
    error = result.notebook_outputs[-1]
    assert max(len(error["evalue"]), len(error["traceback"][0])) < MAX_HEAD_CHARS


@pytest.mark.thorough
def test_many_small_pieces_are_bounded_as_well() -> None:
    outputs = OutputCollector()
    for number in range(200_000):
        outputs.add_display({"text/plain": ""}, f"d{number}")
    assert len(outputs.result().notebook_outputs) < 50_000


def test_pictures_are_kept_while_there_is_room() -> None:
    outputs = OutputCollector()
    for number in range(20):
        picture = {"image/png": str(number % 10) * 1024**2, "text/plain": f"<Figure {number}>"}
        outputs.add_display(picture, "d")
    result = outputs.result()
    assert len(result.image_urls) == 15
    assert "<Figure 14>\n<Figure 15>\n[image/png omitted: 1048587 characters" in result.text
    outputs.update_display({"text/plain": "gone"}, "d")
    outputs.add_display(picture)
    assert len(outputs.result().image_urls) == 1
    outputs.clear()
    outputs.add_display({"application/json": {"a": ["x" * 17 * 1024**2]}})
    assert outputs.result().text.startswith("[application/json omitted")


def test_a_truncated_text_reports_the_omitted_length() -> None:
    assert truncate_middle("x" * 100, 100) == "x" * 100
    once = truncate_middle("a" * 500 + "b" * 500, 100)
    assert once == "a" * 50 + truncation_notice(900) + "b" * 50
    before = "a" * 500 + truncation_notice(1000) + "b" * 500
    assert truncate_middle(before, 100, 1000) == "a" * 50 + truncation_notice(1900) + "b" * 50
