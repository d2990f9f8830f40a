"""What one look has found in a frame: the snapshot of its elements, and their measures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.browser.worker.bids import FrameBids
from oh_jupyter.browser.worker.snapshot import SnapshotDocument

__all__ = ["CapturedFrame", "match_elements"]


@dataclass
class CapturedFrame:
    """What was found in one frame.

    Attributes:
        bids: The frame's bids.
        document: Its DOM snapshot.
        probe: What ``probe.js`` measured, or None where it could not run.
        tree: Its accessibility nodes as they come, the root first; None if not asked for.
        by_index: bid of each element, by index in the snapshot.
        offset: Where the frame's upper left corner is in the page's viewport, px.
        children: The frames in it, by index of their element in the snapshot.
    """

    bids: FrameBids
    document: SnapshotDocument
    probe: dict[str, Any] | None
    tree: asyncio.Task[list[dict[str, Any]]] | None
    by_index: dict[int, str] = field(default_factory=dict)
    offset: tuple[float, float] = (0.0, 0.0)
    children: dict[int, CapturedFrame] = field(default_factory=dict)

    @property
    def accessibility(self) -> list[dict[str, Any]]:
        """The accessibility nodes, once the tree has come."""
        return self.tree.result() if self.tree is not None else []

    def differences(self) -> int:
        """Count the elements that only the snapshot or only the measures have."""
        if self.probe is None:
            return 0
        both = len(match_elements(self))
        reachable = len(self.by_index.keys() - self.document.closed)
        return len(self.probe["tags"]) + reachable - 2 * both


def match_elements(frame: CapturedFrame) -> dict[int, int]:
    """Match the elements of the snapshot with those that the probe has measured.

    Level by level, by tag and order: should the page have changed between the two, only the
    neighbourhood of the change is affected, and only in its measures.
    """
    probe = frame.probe
    if not probe or not probe["tags"]:
        return {}
    below: dict[int, list[int]] = {}
    for index, parent in enumerate(probe["parents"]):
        below.setdefault(parent, []).append(index)
    document = frame.document
    allowed = set(document.elements) - document.closed
    matched: dict[int, int] = {}
    stack = [(0, -1)]
    while stack:
        ours, theirs = stack.pop()
        candidates, position = below.get(theirs, []), 0
        for child in _reachable_children(document, ours, allowed):
            for at in range(position, len(candidates)):
                if probe["tags"][candidates[at]] == document.names[child]:
                    matched[child] = candidates[at]
                    stack.append((child, candidates[at]))
                    position = at + 1
                    break
    return matched


def _reachable_children(document: SnapshotDocument, index: int, allowed: set[int]) -> list[int]:
    """List the child elements, with built-in shadow trees replaced by what is slotted there."""
    found: list[int] = []
    stack = list(reversed(document.children[index]))
    while stack:
        child = stack.pop()
        if child in allowed:
            found.append(child)
        else:
            stack.extend(reversed(document.children[child]))
    return found
