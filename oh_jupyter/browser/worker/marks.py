"""Set-of-marks: which elements get a mark, and the screenshot with the marks drawn on it."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "CLICKABLE_BY_NATURE",
    "MARKED_TAGS",
    "MIN_AREA_PX2",
    "draw_marks",
    "mark_elements",
    "png_bytes",
]

MARKED_TAGS = frozenset(
    {"INPUT", "TEXTAREA", "SELECT", "BUTTON", "A", "IFRAME", "VIDEO", "LI", "TD", "OPTION"}
)
CLICKABLE_BY_NATURE = frozenset({"LABEL", "SUMMARY"})
"""What Chromium calls clickable though nobody listens; BrowserGym does not mark them."""
BUTTON_LIKE = frozenset({"BUTTON", "A"})
MIN_AREA_PX2 = 20
"""In px²."""
DASH_PX, GAP_PX = 4, 3
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER = struct.Struct("!IIBBBBB")
BIT_DEPTH, RGB_COLOUR_TYPE = 8, 2
"""Bits of each of red, green and blue; and the number that says that those are the three."""


def mark_elements(
    tags: Sequence[str],
    parents: Sequence[int],
    boxes: Sequence[Sequence[float] | None],
    hits: Sequence[int],
    active: Sequence[bool],
) -> list[bool]:
    """Decide which elements get a mark, by BrowserGym's rules.

    The lists are parallel, ancestors before descendants; ``parents`` holds indices into them or
    -1, a box is x, y, width and height in px, ``hits`` tells whether a click at the centre
    reaches the element, ``active`` whether it has a handler or shows the pointer cursor.
    """
    marked = [False] * len(tags)
    in_button = [False] * len(tags)
    for index, tag in enumerate(tags):
        parent = parents[index]
        in_button[index] = parent >= 0 and (
            in_button[parent] or (marked[parent] and tags[parent] in BUTTON_LIKE)
        )
        box = boxes[index]
        marked[index] = bool(
            hits[index]
            and box is not None
            and box[2] * box[3] >= MIN_AREA_PX2
            and (tag in MARKED_TAGS or active[index])
            and not in_button[index]
        )
    # A marked child takes the mark from its ancestors.
    below = [False] * len(tags)
    for index in range(len(tags) - 1, -1, -1):
        parent = parents[index]
        if parent >= 0 and (marked[index] or below[index]):
            below[parent] = True
        if below[index]:
            marked[index] = False
    return marked


def draw_marks(screenshot: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw a dashed box and the bid of every marked element.

    Drawn on the picture, not in the page: an overlay in the page would be seen by its scripts.
    """
    marked = [
        (bid, item["bbox"])
        for bid, item in properties.items()
        if item["set_of_marks"] and item["bbox"] is not None
    ]
    if not screenshot or not marked:
        return screenshot
    from PIL import Image, ImageDraw

    prefix, _, encoded = screenshot.partition(",")
    image: Image.Image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    if image.mode != "RGB":
        image = image.convert("RGB")
    draw = ImageDraw.Draw(image)
    font = _font()
    for bid, (x, y, width, height) in marked:
        _dashed_box(draw, x, y, x + width, y + height)
        left, top, right, bottom = draw.textbbox((x + 1, y + 1), bid, font=font)
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill="black")
        draw.text((x + 1, y + 1), bid, fill="white", font=font)
    return f"{prefix},{base64.b64encode(png_bytes(image)).decode('ascii')}"


@cache
def _font() -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=11)


def _dashed_box(draw: Any, left: float, top: float, right: float, bottom: float) -> None:
    width, height = draw.im.size
    left, right = max(left, -DASH_PX), min(right, width + DASH_PX)
    top, bottom = max(top, -DASH_PX), min(bottom, height + DASH_PX)
    for start in range(int(left), int(right), DASH_PX + GAP_PX):
        end = min(start + DASH_PX, right)
        draw.line((start, top, end, top), fill="red")
        draw.line((start, bottom, end, bottom), fill="red")
    for start in range(int(top), int(bottom), DASH_PX + GAP_PX):
        end = min(start + DASH_PX, bottom)
        draw.line((left, start, left, end), fill="red")
        draw.line((right, start, right, end), fill="red")


def png_bytes(image: Image.Image) -> bytes:
    """Encode an RGB picture as PNG without row filters.

    Pillow tries five filters on each row, which costs more than all the rest; without them a
    picture of a page is written in half the time and is not larger.
    """
    width, height = image.size
    pixels, row = image.tobytes(), width * 3
    # Each row begins with the number of its filter.
    rows = b"".join([b"\0" + pixels[at : at + row] for at in range(0, len(pixels), row)])
    header = PNG_HEADER.pack(width, height, BIT_DEPTH, RGB_COLOUR_TYPE, 0, 0, 0)
    body = zlib.compress(rows, level=1)
    return (
        PNG_SIGNATURE
        + _png_chunk(b"IHDR", header)
        + _png_chunk(b"IDAT", body)
        + _png_chunk(b"IEND", b"")
    )


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + kind + body + struct.pack("!I", zlib.crc32(kind + body))
