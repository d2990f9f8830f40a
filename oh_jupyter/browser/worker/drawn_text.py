"""Text that an editor draws but hides from the accessibility tree.

Monaco, the editor of VS Code, hides its lines from assistive technology, and its text field holds
at most a part of the text. This module sets the drawn lines as the value of the editor's node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oh_jupyter.browser.worker.snapshot import TEXT, SnapshotDocument

EDITOR_CLASS, LINES_CLASS = "monaco-editor", "view-lines"
FIELD_ROLES = frozenset({"textbox", "code"})


def add_drawn_text(document: SnapshotDocument, nodes: Sequence[dict[str, Any]]) -> None:
    """Set the values of editors among the accessibility nodes of a document."""
    drawn = _with_class(document, LINES_CLASS)
    by_index = _nodes_by_index(document, nodes) if drawn else {}
    for lines in drawn:
        owner = _owner(document, lines, by_index)
        if owner is None or not by_index.keys().isdisjoint(_below(document, lines)):
            continue  # this is not an editor, or the tree already has its lines
        text = _drawn(document, lines)
        if text.strip():
            owner["value"] = {"type": "string", "value": text}


def _nodes_by_index(
    document: SnapshotDocument, nodes: Sequence[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    by_id = {node.get("backendDOMNodeId"): node for node in nodes if not node.get("ignored")}
    ids = enumerate(document.backend_ids)
    return {index: by_id[backend_id] for index, backend_id in ids if backend_id in by_id}


def _with_class(document: SnapshotDocument, name: str) -> list[int]:
    # Search the strings first, since most pages contain no such editor.
    matches = {
        i for i, text in enumerate(document.strings) if name in text and name in text.split()
    }
    if not matches:
        return []
    rows = document.data["nodes"]["attributes"]
    return [
        index
        for index in document.elements
        if not matches.isdisjoint(rows[index][1::2])
        and name in document.attributes(index).get("class", "").split()
    ]


def _owner(
    document: SnapshotDocument, lines: int, by_index: dict[int, dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the node of the editor around some lines, or of its text field."""
    editor = document.parents[lines]
    while editor >= 0 and EDITOR_CLASS not in document.attributes(editor).get("class", "").split():
        editor = document.parents[editor]
    if editor < 0:
        return None
    candidates = [editor, *_below(document, editor)]
    owned = (by_index[index] for index in candidates if index in by_index)
    return next((node for node in owned if node["role"]["value"] in FIELD_ROLES), None)


def _below(document: SnapshotDocument, index: int) -> list[int]:
    """Return all nodes in an element, in document order."""
    below: list[int] = []
    stack = list(reversed(document.children[index]))
    while stack:
        below.append(stack.pop())
        stack.extend(reversed(document.children[below[-1]]))
    return below


def _drawn(document: SnapshotDocument, lines: int) -> str:
    """Return the lines from top to bottom; the editor reuses their elements in any order."""
    placed = [(box[1], line) for line in document.children[lines] if (box := document.box(line))]
    return "\n".join(_text(document, line) for _, line in sorted(placed))


def _text(document: SnapshotDocument, line: int) -> str:
    texts = (document.value(i) for i in _below(document, line) if document.kinds[i] == TEXT)
    return "".join(texts).replace("\N{NO-BREAK SPACE}", " ").rstrip()
