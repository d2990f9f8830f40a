"""bids: short ids for the elements of a page, kept outside the page.

A bid belongs to DevTools' backend node id, which lives as long as the element and is never
given twice, so nothing has to be written into the page, and accessibility tree, snapshot and
actions agree by construction. (Measured against a registry in the page: as fast, and no page
can see or break it.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Any

MAX_REMOVED_ELEMENTS = 50_000
"""Elements of one document that are remembered though they were taken out of it."""


def frame_letters(number: int) -> str:
    """Name the n-th frame of a document, from 0: ``a`` … ``z``, ``aA`` … ``zZ``, ``aAA`` …."""
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
    """The bids of one frame: ``prefix`` is its own, ``owner`` its element's backend node id."""

    prefix: str
    parent: FrameBids | None
    owner: int | None
    session: Any
    frame_id: str
    document: object = None
    given: dict[int, str] = field(default_factory=dict)
    _elements: int = 0
    _frames: int = 0

    def renew(self, document: object) -> None:
        """Begin to count anew when the frame shows another document."""
        if document != self.document:
            self.document = document
            self.given = {}
            self._elements = self._frames = 0

    def give(self, backend_id: int, is_frame: bool) -> str:
        """Look up the bid of an element, or give it the next one."""
        bid = self.given.get(backend_id)
        if bid is None:
            if is_frame:
                bid = self.prefix + frame_letters(self._frames)
                self._frames += 1
            else:
                bid = f"{self.prefix}{self._elements}"
                self._elements += 1
            self.given[backend_id] = bid
        return bid

    def forget_all_but(self, present: Collection[int], most: int = MAX_REMOVED_ELEMENTS) -> None:
        """Forget the elements that are no longer in the page, once there are many of them."""
        if len(self.given) - len(present) > most:
            self.given = {each: self.given[each] for each in present}


class BidRegistry:
    """All bids of one page: those of the last look at it can be acted on."""

    def __init__(self) -> None:
        self._frames: dict[str, FrameBids] = {}
        self._elements: dict[str, tuple[FrameBids, int]] = {}
        self._shown: set[object] = set()

    def frame(self, prefix: str) -> FrameBids | None:
        """Find what is known of a frame."""
        return self._frames.get(prefix)

    def replace(self, frames: Iterable[tuple[FrameBids, dict[int, str]]]) -> None:
        """Take in what a new look at the page has found."""
        self._frames, self._elements = {}, {}
        for frame, present in frames:
            self._frames[frame.prefix] = frame
            frame.forget_all_but(present)
            for backend_id, bid in present.items():
                self._elements[bid] = (frame, backend_id)

    def forget(self, frame_id: str) -> None:
        """Drop the elements of a frame that shows another document now."""
        gone = {frame.prefix for frame in self._frames.values() if frame.frame_id == frame_id}
        if "" in gone:
            self._elements = {}
        for prefix in gone:
            self._elements = {
                bid: (frame, backend_id)
                for bid, (frame, backend_id) in self._elements.items()
                if not frame.prefix.startswith(prefix)
            }

    def bid_of(self, session: Any, backend_id: int) -> str:
        """Find the bid of an element, "" if it was not in the last look."""
        found = (bid for bid, (frame, each) in self._elements.items()
                 if each == backend_id and frame.session is session)  # fmt: skip
        return next(found, "")

    def show(self) -> None:
        """Make the bids of the last look valid for actions."""
        self._shown = {frame.document for frame in self._frames.values()}

    def find(self, bid: str) -> tuple[FrameBids, int] | None:
        """Find the element of a bid, if its document is one whose bids were shown."""
        found = self._elements.get(bid)
        # Each document numbers its bids from the start: the same bid means another element here.
        return found if found is not None and found[0].document in self._shown else None
