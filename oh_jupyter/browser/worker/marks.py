"""Bids, the short ids of a page's elements, and the set-of-marks that shows them in a screenshot.

A bid maps to DevTools' backend node id, which lives as long as the element and is never reused. The
worker therefore writes nothing into the page, and accessibility tree, snapshot and actions agree by
construction. (Compared with a registry in the page, this is as fast, and no page can see or break
it.)
"""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image


MAX_REMOVED_ELEMENTS = 50_000
"""Elements remembered after their removal from one document."""


def frame_letters(number: int) -> str:
    """Return the bid of a document's n-th frame: ``a`` … ``z``, ``aA`` … ``zZ``, ``aAA`` …."""
    length, first = 1, 0
    while number >= first + 26**length:
        first += 26**length
        length += 1
    rest = number - first
    letters = []
    for _ in range(length - 1):
        rest, digit = divmod(rest, 26)
        letters.append(ascii_uppercase[digit])
    return ascii_lowercase[rest] + "".join(reversed(letters))


@dataclass
class FrameBids:
    """Bids of one frame: ``prefix`` is the frame's bid, ``owner`` its element's backend node id."""

    prefix: str
    parent: FrameBids | None
    owner: int | None
    session: Any
    frame_id: str
    document: object = None
    by_backend_id: dict[int, str] = field(default_factory=dict)
    _elements: int = 0
    _frames: int = 0

    def is_within(self, frame_id: str) -> bool:
        """Return whether this is the frame with an id, or nested in it."""
        return self.frame_id == frame_id or (
            self.parent is not None and self.parent.is_within(frame_id)
        )

    def renew(self, document: object) -> None:
        """Restart the numbering if the frame shows another document."""
        if document != self.document:
            self.document = document
            self.by_backend_id = {}
            self._elements = self._frames = 0

    def assign(self, backend_id: int, is_frame: bool) -> str:
        """Return the bid of an element, or assign the next one."""
        bid = self.by_backend_id.get(backend_id)
        if bid is None:
            if is_frame:
                bid = self.prefix + frame_letters(self._frames)
                self._frames += 1
            else:
                bid = f"{self.prefix}{self._elements}"
                self._elements += 1
            self.by_backend_id[backend_id] = bid
        return bid

    def forget_all_but(self, present: Collection[int], limit: int = MAX_REMOVED_ELEMENTS) -> None:
        """Forget the removed elements once there are more than ``limit``."""
        if len(self.by_backend_id) - len(present) > limit:
            self.by_backend_id = {each: self.by_backend_id[each] for each in present}


class BidRegistry:
    """All bids of one page; actions accept those of the last capture."""

    def __init__(self) -> None:
        self._frames: dict[str, FrameBids] = {}
        self._elements: dict[str, tuple[FrameBids, int]] = {}
        self._shown: set[object] = set()

    def frame(self, prefix: str) -> FrameBids | None:
        """Return the bids of a frame, if known."""
        return self._frames.get(prefix)

    def replace(self, frames: Iterable[tuple[FrameBids, dict[int, str]]]) -> None:
        """Replace all elements with those of a new capture."""
        self._frames, self._elements = {}, {}
        for frame, present in frames:
            self._frames[frame.prefix] = frame
            frame.forget_all_but(present)
            for backend_id, bid in present.items():
                self._elements[bid] = (frame, backend_id)

    def forget(self, frame_id: str) -> None:
        """Remove the elements of a frame that shows another document now."""
        self._elements = {
            bid: (frame, backend_id)
            for bid, (frame, backend_id) in self._elements.items()
            if not frame.is_within(frame_id)
        }

    def bid_of(self, session: Any, backend_id: int) -> str:
        """Return the bid of an element, or "" if the last capture does not contain it."""
        matches = (bid for bid, (frame, each) in self._elements.items()
                   if each == backend_id and frame.session is session)  # fmt: skip
        return next(matches, "")

    def show(self) -> None:
        """Make the bids of the last capture valid for actions."""
        self._shown = {frame.document for frame in self._frames.values()}

    def find(self, bid: str) -> tuple[FrameBids, int] | None:
        """Return the frame and backend node id of a bid, if its document's bids were shown."""
        match = self._elements.get(bid)
        # Each document restarts its numbering, so a bid of another document is a wrong element.
        return match if match is not None and match[0].document in self._shown else None


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
