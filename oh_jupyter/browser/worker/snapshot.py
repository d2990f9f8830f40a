"""Reader for DevTools DOM snapshots, with elements in flat-tree order.

``DOMSnapshot.captureSnapshot`` returns each document as parallel lists over one string table;
the classes here name the few queries that the worker needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.browser.worker.marks import FrameBids

ELEMENT, TEXT = 1, 3
UNSET_VALUES = {
    "BUTTON": "", "DATA": "", "LI": "0", "METER": "0", "OPTION": None, "PROGRESS": "0",
}  # fmt: skip
"""Value that scripts read from elements without a value attribute; None for the element's text."""


class SnapshotDocument:
    """One document of a snapshot: its nodes by index; ``elements`` omits built-in elements."""

    def __init__(self, data: dict[str, Any], strings: list[str]) -> None:
        nodes = data["nodes"]
        self.data = data
        self.strings = strings
        self.frame_id = strings[data["frameId"]] if data.get("frameId", -1) >= 0 else ""
        self.backend_ids: list[int] = nodes["backendNodeId"]
        self.kinds: list[int] = nodes["nodeType"]
        self.names = [strings[index].upper() for index in nodes["nodeName"]]
        self.parents: list[int] = nodes["parentIndex"]
        self.children: list[list[int]] = [[] for _ in self.names]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                self.children[parent].append(index)
        roots = {i: strings[kind] for i, kind in self._sparse("shadowRootType").items()}
        self.closed = {index for index, kind in roots.items() if kind == "closed"}
        hidden = set(self._sparse("pseudoType"))
        hidden.update(index for index, kind in roots.items() if kind == "user-agent")
        self.elements = [
            index
            for index, kind in enumerate(self.kinds)
            if kind == ELEMENT and index not in hidden
        ]
        self._input_values = {**self._sparse("inputValue"), **self._sparse("textValue")}
        self._checked = self._flagged("inputChecked")
        self._selected = self._flagged("optionSelected")
        self._layout_rows: dict[int, int] = {}
        self.clickable = self._flagged("isClickable")
        self.content_documents = dict(
            zip(
                nodes.get("contentDocumentIndex", {}).get("index", ()),
                nodes.get("contentDocumentIndex", {}).get("value", ()),
                strict=True,
            )
        )

    def _sparse(self, name: str) -> dict[int, int]:
        table = self.data["nodes"].get(name, {})
        return dict(zip(table.get("index", ()), table.get("value", ()), strict=True))

    def _flagged(self, name: str) -> set[int]:
        return set(self.data["nodes"].get(name, {}).get("index", ()))

    def box(self, index: int) -> tuple[float, float, float, float] | None:
        """Return an element's x, y, width and height in its frame's viewport, in px."""
        layout = self.data["layout"]
        if not self._layout_rows:
            self._layout_rows = {node: row for row, node in enumerate(layout["nodeIndex"])}
        row = self._layout_rows.get(index)
        if row is None:
            return None
        x, y, width, height = layout["bounds"][row]
        left, top = self.data.get("scrollOffsetX", 0.0), self.data.get("scrollOffsetY", 0.0)
        return x - left, y - top, width, height

    def with_ancestors(self, indices: Iterable[int]) -> set[int]:
        """Return nodes with all nodes around them."""
        included: set[int] = set()
        for index in indices:
            while index >= 0 and index not in included:
                included.add(index)
                index = self.parents[index]
        return included

    def drawn_texts(self) -> dict[int, str]:
        """Return the text nodes that are drawn, with their texts as drawn, by index."""
        layout = self.data["layout"]
        return {
            index: self.strings[text]
            for index, text in zip(layout["nodeIndex"], layout["text"], strict=True)
            if text >= 0 and self.kinds[index] == TEXT
        }

    def attributes(self, index: int) -> dict[str, str]:
        """Return the attributes of an element, with the live value of an input."""
        pairs = self.data["nodes"]["attributes"][index]
        attributes = {
            self.strings[pairs[i]]: self.strings[pairs[i + 1]] if pairs[i + 1] >= 0 else ""
            for i in range(0, len(pairs), 2)
        }
        if index in self._input_values:
            attributes["value"] = self.strings[self._input_values[index]]
        return attributes

    def write_attributes(self, bids: dict[int, str]) -> None:
        """Write bids and live values into the snapshot as attributes, as BrowserGym does."""
        rows = self.data["nodes"]["attributes"]
        names = {name: self._intern(name) for name in ("bid", "value", "checked", "selected")}
        empty = self._intern("")
        for index, bid in bids.items():
            row = rows[index]
            # A page may have its own ``bid`` attribute, so replace an existing one.
            self._set(row, names["bid"], self._intern(bid))
            if index in self._input_values:
                self._set(row, names["value"], self._input_values[index])
            elif self.names[index] in UNSET_VALUES and "value" not in self.attributes(index):
                unset = UNSET_VALUES[self.names[index]]
                value = self._text_of(index) if unset is None else unset
                self._set(row, names["value"], self._intern(value))
            for tag, flag, flagged in (
                ("INPUT", "checked", self._checked),
                ("OPTION", "selected", self._selected),
            ):
                if self.names[index] == tag:
                    self._drop(row, flag)
                    if index in flagged:
                        row += [names[flag], empty]
        for option in sorted(self._selected, reverse=True):
            select = self._select_of(option)
            if select in bids:
                value = self.attributes(option).get("value", "")
                self._set(rows[select], names["value"], self._intern(value))

    def _select_of(self, option: int) -> int:
        """Return the index of an option's select element, or -1."""
        select = self.parents[option]
        while select >= 0 and self.names[select] != "SELECT":
            select = self.parents[select]
        return select

    def _text_of(self, index: int) -> str:
        """Return the text of an option as scripts read it."""
        return " ".join("".join(map(self.value, self.children[index])).split())

    def value(self, index: int) -> str:
        """Return the value of a text node."""
        value: int = self.data["nodes"]["nodeValue"][index]
        return self.strings[value] if value >= 0 else ""

    def _intern(self, text: str) -> int:
        self.strings.append(text)
        return len(self.strings) - 1

    def _set(self, row: list[int], name: int, value: int) -> None:
        for position in range(0, len(row), 2):
            if self.strings[row[position]] == self.strings[name]:
                row[position + 1] = value
                return
        row += [name, value]

    def _drop(self, row: list[int], name: str) -> None:
        for position in range(0, len(row), 2):
            if self.strings[row[position]] == name:
                del row[position : position + 2]
                return


def documents_of(snapshot: dict[str, Any]) -> list[SnapshotDocument]:
    """Return the documents of a snapshot."""
    strings = snapshot["strings"]
    return [SnapshotDocument(document, strings) for document in snapshot["documents"]]


@dataclass
class CapturedFrame:
    """Capture of one frame; ``offset`` is the frame's origin in the page's viewport, in px."""

    bids: FrameBids
    document: SnapshotDocument
    probe: dict[str, Any] | None
    tree: asyncio.Task[list[dict[str, Any]]] | None
    by_index: dict[int, str] = field(default_factory=dict)
    offset: tuple[float, float] = (0.0, 0.0)
    children: dict[int, CapturedFrame] = field(default_factory=dict)

    @property
    def accessibility(self) -> list[dict[str, Any]]:
        """Accessibility nodes of the fetched tree."""
        return self.tree.result() if self.tree is not None else []

    def differences(self) -> int:
        """Count the elements in only one of snapshot and probe."""
        if self.probe is None:
            return 0
        common = len(match_elements(self))
        reachable = len(self.by_index.keys() - self.document.closed)
        return len(self.probe["tags"]) + reachable - 2 * common


def match_elements(frame: CapturedFrame) -> dict[int, int]:
    """Map snapshot elements to probe indices, level by level, by tag and order."""
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
        index, probe_index = stack.pop()
        candidates, position = below.get(probe_index, []), 0
        for child in _reachable_children(document, index, allowed):
            for at in range(position, len(candidates)):
                if probe["tags"][candidates[at]] == document.names[child]:
                    matched[child] = candidates[at]
                    stack.append((child, candidates[at]))
                    position = at + 1
                    break
    return matched


def _reachable_children(document: SnapshotDocument, index: int, allowed: set[int]) -> list[int]:
    """Return the child elements, with built-in shadow trees replaced by their slotted content."""
    reachable: list[int] = []
    stack = list(reversed(document.children[index]))
    while stack:
        child = stack.pop()
        if child in allowed:
            reachable.append(child)
        else:
            stack.extend(reversed(document.children[child]))
    return reachable
