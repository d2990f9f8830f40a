"""Set-of-marks: which elements get a mark, and the screenshot with the marks drawn on it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from oh_jupyter.browser.worker.png import png_bytes

__all__ = ["CLICKABLE_BY_NATURE", "draw_marks", "mark_elements"]

MARKED_TAGS = frozenset(
    {"INPUT", "TEXTAREA", "SELECT", "BUTTON", "A", "IFRAME", "VIDEO", "LI", "TD", "OPTION"}
)
CLICKABLE_BY_NATURE = frozenset({"LABEL", "SUMMARY"})
"""What Chromium calls clickable though nobody listens; BrowserGym does not mark them."""
BUTTON_LIKE = frozenset({"BUTTON", "A"})
SMALLEST_AREA = 20
"""In px²."""
DASH, GAP = 4, 3


def mark_elements(
    tags: Sequence[str],
    parents: Sequence[int],
    boxes: Sequence[Sequence[float] | None],
    hits: Sequence[int],
    active: Sequence[bool],
) -> list[bool]:
    """Decide which elements get a mark, by BrowserGym's rules.

    Args:
        tags: Tag name of each element, upper case, ancestors before descendants.
        parents: Index of each element's parent, or -1.
        boxes: x, y, width, height of each element in px, or None where nothing is drawn.
        hits: Whether a click at the centre reaches the element or a descendant.
        active: Whether the element has a click handler or shows the pointer cursor.

    Returns:
        The decision for each element.
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
            and box[2] * box[3] >= SMALLEST_AREA
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

    Args:
        screenshot: PNG data URL of the viewport.
        properties: ``extra_element_properties`` of the same moment.

    Returns:
        PNG data URL.
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
    left, right = max(left, -DASH), min(right, width + DASH)
    top, bottom = max(top, -DASH), min(bottom, height + DASH)
    for start in range(int(left), int(right), DASH + GAP):
        end = min(start + DASH, right)
        draw.line((start, top, end, top), fill="red")
        draw.line((start, bottom, end, bottom), fill="red")
    for start in range(int(top), int(bottom), DASH + GAP):
        end = min(start + DASH, bottom)
        draw.line((left, start, left, end), fill="red")
        draw.line((right, start, right, end), fill="red")
