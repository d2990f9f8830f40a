"""bids: short ids for the elements of a page, stored outside the page.

A bid maps to DevTools' backend node id, which lives as long as the element and is never reused.
The worker therefore writes nothing into the page, and accessibility tree, snapshot and actions
agree by construction. (Compared with a registry in the page, this is as fast, and no page can
see or break it.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Any

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
