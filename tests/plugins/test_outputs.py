"""A cell's outputs in order, as an agent reads them."""

from __future__ import annotations

from oh_jupyter.plugins.outputs import Outputs, strip_ansi


def collected(*messages: tuple[str, dict]) -> Outputs:
    outputs = Outputs()
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


def test_updates_stay_in_place_and_clear_output_waits_if_told_to() -> None:
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
