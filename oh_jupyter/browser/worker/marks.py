"""Set-of-marks: selection of the marked elements, and the screenshot with their marks."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

MARKED_TAGS = frozenset(
    {"INPUT", "TEXTAREA", "SELECT", "BUTTON", "A", "IFRAME", "VIDEO", "LI", "TD", "OPTION"}
)
CLICKABLE_BY_NATURE = frozenset({"LABEL", "SUMMARY"})
"""Tags that Chromium calls clickable even without a listener; BrowserGym does not mark them."""
MARKED_BY_TAG_ALONE = frozenset({"IFRAME", "LI", "OPTION", "TD", "VIDEO"})
"""Tags that BrowserGym marks even without a listener; the screenshot shows only active ones."""
BUTTON_LIKE = frozenset({"BUTTON", "A"})
MIN_AREA_PX2 = 20
"""Minimum area of a marked element, in px²."""
MARK_COLOUR = (194, 24, 91)
LABEL_PX = 11
MAX_UNEVENNESS = 24
"""Maximum colour difference, of 255, in an area without text."""
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER = struct.Struct("!IIBBBBB")
BIT_DEPTH, RGB_COLOUR_TYPE = 8, 2
"""Bits per channel, and PNG's number of the colour type with red, green and blue channels."""


def mark_elements(
    tags: Sequence[str],
    parents: Sequence[int],
    boxes: Sequence[Sequence[float] | None],
    hits: Sequence[int],
    active: Sequence[bool],
) -> list[bool]:
    """Return which elements get a mark by BrowserGym's rules; ancestors come first in the lists."""
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


def draw_marks(
    screenshot: str,
    properties: Mapping[str, Mapping[str, Any]],
    *,
    viewport_width: float = 0.0,
    inactive: Collection[str] = (),
) -> str:
    """Draw a box around every marked, active element, with its bid beside it."""
    # Draw on the screenshot: the page's scripts would see an overlay in the page.
    marked = [
        (bid, item["bbox"])
        for bid, item in properties.items()
        if item["set_of_marks"] and item["bbox"] is not None and bid not in inactive
    ]
    if not screenshot or not marked:
        return screenshot
    from PIL import Image, ImageDraw

    prefix, _, encoded = screenshot.partition(",")
    image: Image.Image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    image.load()  # otherwise drawing copies the image
    if image.mode != "RGB":
        image = image.convert("RGB")
    draw = ImageDraw.Draw(image)
    scale = image.width / viewport_width if viewport_width else 1.0
    boxes = [(bid, [value * scale for value in box]) for bid, box in marked]
    line = max(1, round(scale))
    for _, (x, y, width, height) in boxes:
        # Clip to the image: elements may be a million px long.
        corner = max(x - line, -9), max(y - line, -9)
        end = min(x + width + line, image.width + 9), min(y + height + line, image.height + 9)
        if end[0] > corner[0] and end[1] > corner[1]:
            draw.rectangle((*corner, *end), outline=MARK_COLOUR, width=line)
    font = _font(round(LABEL_PX * max(1.0, scale)))
    for bid, box in boxes:
        left, top, right, bottom = (round(value) for value in font.getbbox(bid))
        size = right - left + 4 * line, bottom - top + 4 * line
        x, y = _label_corner(image, box, size, line)
        draw.rectangle((x, y, x + size[0] - 1, y + size[1] - 1), fill=MARK_COLOUR)
        draw.text((x + 2 * line - left, y + 2 * line - top), bid, fill="white", font=font)
    return f"{prefix},{base64.b64encode(png_bytes(image)).decode('ascii')}"


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)


def _label_corner(
    image: Image.Image, box: Sequence[float], size: tuple[int, int], line: int
) -> tuple[int, int]:
    """Return a position for a label: a free area around the element, else its corner."""
    x, y, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
    width, height = size
    gap = line + 1
    around = (
        (x - line, y - height - gap),
        (right - width + line, y - height - gap),
        (x - width - gap, y),
        (right + gap, y),
        (x - line, bottom + gap),
        (right - width - gap, y + gap),
    )
    for left, top in around:
        corner = round(left), round(top)
        if _is_free(image, corner, size):
            return corner
    # Without room, place the label mostly above the element, so that its text stays readable.
    left, top = max(0, round(x) - line), max(0, round(y) - height * 2 // 3)
    return min(left, image.width - width), min(top, image.height - height)


def _is_free(image: Image.Image, corner: tuple[int, int], size: tuple[int, int]) -> bool:
    """Return whether an area lies within the image and has one colour."""
    end = corner[0] + size[0], corner[1] + size[1]
    if min(corner) < 0 or end[0] > image.width or end[1] > image.height:
        return False
    extremes: Any = image.crop((*corner, *end)).getextrema()
    return all(high - low <= MAX_UNEVENNESS for low, high in extremes)


def png_bytes(image: Image.Image) -> bytes:
    """Encode an RGB picture as PNG without row filters, which takes half the time."""
    width, height = image.size
    # A row starts with its filter number, 0: the padding byte of the previous row.
    rows = b"\0" + image.tobytes("raw", "RGB", width * 3 + 1)[:-1]
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
