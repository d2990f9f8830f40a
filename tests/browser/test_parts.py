"""The pieces that need no browser: names of frames, marks, the tree as text, frames on a pipe."""

from __future__ import annotations

import base64
import io
import math
import os
import threading

from PIL import Image, ImageDraw

from oh_jupyter.browser.channel.pipe import read_frame, write_frame
from oh_jupyter.browser.tree_text import flatten_axtree
from oh_jupyter.browser.worker.marks import (
    MARK_COLOUR,
    BidRegistry,
    FrameBids,
    draw_marks,
    frame_letters,
    mark_elements,
    png_bytes,
)


def test_frame_letters():
    names = [frame_letters(number) for number in range(26 + 26 * 26 + 2)]
    assert names[:2] + names[25:28] == ["a", "b", "z", "aA", "aB"]
    assert names[51:53] == ["aZ", "bA"]
    assert names[-2:] == ["aAA", "aAB"]
    assert len(set(names)) == len(names)


def test_a_new_document_restarts_the_count():
    frame = FrameBids("a", None, None, None, "F")
    frame.renew(("F", 1))
    assert [frame.assign(7, False), frame.assign(9, True), frame.assign(7, False)] == [
        "a0",
        "aa",
        "a0",
    ]
    frame.renew(("F", 1))
    assert frame.assign(8, False) == "a1"
    frame.renew(("F", 2))
    assert frame.assign(8, False) == "a0"


def test_a_navigation_drops_the_bids_of_the_frame_and_of_those_in_it():
    root = FrameBids("", None, None, None, "root")
    frame = FrameBids("a", root, 1, None, "first")
    nested = FrameBids("aa", frame, 2, None, "nested")
    sibling = FrameBids("aA", root, 3, None, "sibling 27")
    bids = BidRegistry()
    bids.replace((each, {5: f"{each.prefix}0"}) for each in (root, frame, nested, sibling))
    bids.show()
    bids.forget("first")
    remaining = [bid for bid in ("0", "a0", "aa0", "aA0") if bids.find(bid)]
    assert remaining == ["0", "aA0"]


def test_marks_follow_the_rules():
    rows = [  # tag, parent, box, hit, active, marked
        ("HTML", -1, [0, 0, 99, 99], 1, False, False),
        ("LI", 0, [0, 0, 50, 10], 1, False, False),  # gives its mark to the link
        ("A", 1, [0, 0, 20, 10], 1, True, True),
        ("SPAN", 2, [0, 0, 20, 10], 1, True, False),  # inside a marked link
        ("INPUT", 0, [0, 0, 4, 4], 1, False, False),  # too small
        ("INPUT", 0, [0, 0, 40, 4], 0, False, False),  # covered
        ("DIV", 0, [0, 0, 40, 40], 1, True, True),  # a handler or the pointer cursor
        ("DIV", 0, [0, 0, 40, 40], 1, False, False),
        ("TD", 0, None, 1, False, False),  # not drawn
    ]
    tags, parents, boxes, hits, active, expected = zip(*rows, strict=True)
    assert mark_elements(tags, parents, boxes, hits, active) == list(expected)


def node(number, role, name, children=(), bid=None, **properties):
    made = {
        "nodeId": str(number),
        "role": {"value": role},
        "name": {"value": name},
        "childIds": [str(child) for child in children],
        "properties": [{"name": k, "value": {"value": v}} for k, v in properties.items()],
    }
    return made | ({"browsergym_id": bid} if bid else {})


def test_tree_as_text():
    box = node(3, "textbox", "It's", (), "5", required=True, invalid="false", focused=False)
    box["value"] = {"value": "x"}
    tree = {
        "nodes": [
            node(1, "RootWebArea", "T", (2, 6), focused=True, url="u"),
            node(2, "generic", "", (3, 4, 7), "4"),
            box,
            node(4, "button", " Save ", (5,), "6", expanded=False),
            node(5, "StaticText", "Save"),
            node(6, "paragraph", "", (8,), "9"),
            {"nodeId": "7", "role": {"value": "none"}, "childIds": ["9"], "ignored": True},
            node(8, "StaticText", "hidden text"),
            node(9, "InlineTextBox", "nothing"),
        ]
    }
    extra = {
        bid: {"visibility": 0.0 if bid == "9" else 1.0, "clickable": bid == "6", "bbox": None}
        for bid in ("4", "5", "6", "9")
    }
    assert flatten_axtree(tree, extra, with_clickable=True, skip_generic=False).split("\n") == [
        "RootWebArea 'T', focused, url='u'",
        "\t[4] generic",
        "\t\t[5] textbox \"It's\" value='x', required",
        "\t\t[6] button 'Save', clickable, expanded=False",
        "\t[9] paragraph ''",
        "\t\tStaticText 'hidden text'",
    ]
    assert flatten_axtree(tree, extra, visible_only=True, with_visible=True).split("\n") == [
        "RootWebArea 'T', focused, url='u'",
        "\t[5] textbox \"It's\" value='x', visible, required",
        "\t[6] button 'Save', visible, expanded=False",
    ]
    assert flatten_axtree({"nodes": []}) == ""


def test_frames_on_a_pipe():
    reading, writing = os.pipe()
    big = {"text": "x" * 3_000_000 + "\ud800 ☃", "n": [1, None, True]}
    thread = threading.Thread(target=lambda: [write_frame(writing, big), os.close(writing)])
    thread.start()
    assert read_frame(reading) == big
    assert read_frame(reading) is None
    thread.join()
    os.close(reading)


def test_the_fast_writer_has_the_same_output():
    reading, writing = os.pipe()
    messages = [
        {"id": 1, "result": {"text": "é 😀", "box": [0.5, None], "nested": {"true": True}}},
        {"id": 2, "result": {"text": "half of a pair: \ud83d"}},  # pages may hold those
        {"id": 3, "result": {7: 2**70}},
    ]
    for message in messages:
        write_frame(writing, message, is_finite=True)
    assert read_frame(reading) == messages[0]
    assert read_frame(reading) == messages[1]
    assert read_frame(reading) == {"id": 3, "result": {"7": 2**70}}
    write_frame(writing, {"id": 4, "result": {"numbers": [math.nan, -math.inf]}})
    numbers = (read_frame(reading) or {})["result"]["numbers"]
    assert math.isnan(numbers[0])
    assert numbers[1] == -math.inf
    os.close(reading)
    os.close(writing)


def test_pictures_are_written_without_loss():
    image = Image.effect_noise((37, 11), 90).convert("RGB")
    image.putpixel((36, 10), (1, 2, 3))
    with Image.open(io.BytesIO(png_bytes(image))) as read:
        assert (read.format, read.mode, read.size) == ("PNG", "RGB", (37, 11))
        assert read.tobytes() == image.tobytes()


def marked(size: tuple[int, int], boxes: dict[str, list[float]], **options: object) -> Image.Image:
    """A white picture with those elements, grey and with lines as of a text, and their marks."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    density = size[0] / options.get("viewport_width", size[0])
    for x, y, width, height in boxes.values():
        draw.rectangle([n * density for n in (x, y, x + width, y + height)], fill="gray")
        draw.line([n * density for n in (x, y + 5, x + width, y + 5)], fill="black")
    encoded = base64.b64encode(png_bytes(image)).decode()
    properties = {bid: {"set_of_marks": True, "bbox": box} for bid, box in boxes.items()}
    drawn = draw_marks(f"data:image/png;base64,{encoded}", properties, **options)
    return Image.open(io.BytesIO(base64.b64decode(drawn.partition(",")[2]))).convert("RGB")


def marked_dots(image: Image.Image, area: tuple[float, float, float, float]) -> int:
    colours = image.crop(tuple(map(round, area))).getcolors(1 << 20)
    return sum(count for count, colour in colours if colour == MARK_COLOUR)


def test_a_bid_stands_beside_its_element_where_there_is_room():
    room = {"7": [100.0, 50.0, 60.0, 20.0], "8": [0.0, 0.0, 60.0, 20.0]}
    image = marked((300, 200), room)
    for x, y, width, height in room.values():
        assert marked_dots(image, (x + 1, y + 1, x + width - 1, y + height - 1)) == 0
    assert marked_dots(image, (95, 30, 160, 48)) > 40
    assert marked_dots(image, (62, 0, 90, 20)) > 40


def test_marks_fit_the_pixel_density_and_the_actionable_elements():
    boxes = {"12": [100.0, 50.0, 60.0, 20.0], "13": [20.0, 90.0, 60.0, 20.0]}
    image = marked((600, 400), boxes, viewport_width=300, inactive={"13"})
    assert marked_dots(image, (200, 60, 320, 98)) > 300
    assert marked_dots(image, (0, 150, 180, 260)) == 0
