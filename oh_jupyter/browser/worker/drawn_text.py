"""Text that an editor draws, and that its page keeps out of the accessibility tree.

Monaco, the editor of VS Code, hides its lines from assistive technology, and gives its text field
a part of the text at most. Its element gets the lines that are drawn as its value.
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
    by_place = _places(document, nodes) if drawn else {}
    for lines in drawn:
        owner = _owner(document, lines, by_place)
        if owner is None or not by_place.keys().isdisjoint(_below(document, lines)):
            continue  # it is no editor, or the tree has its lines
        text = _drawn(document, lines)
        if text.strip():
            owner["value"] = {"type": "string", "value": text}


def _places(
    document: SnapshotDocument, nodes: Sequence[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    found = {node.get("backendDOMNodeId"): node for node in nodes if not node.get("ignored")}
    ids = enumerate(document.backend_ids)
    return {index: found[backend_id] for index, backend_id in ids if backend_id in found}


def _with_class(document: SnapshotDocument, name: str) -> list[int]:
    # The class is looked for among the strings first: most pages have no such editor.
    known = {i for i, text in enumerate(document.strings) if name in text and name in text.split()}
    if not known:
        return []
    rows = document.data["nodes"]["attributes"]
    return [
        index
        for index in document.elements
        if not known.isdisjoint(rows[index][1::2])
        and name in document.attributes(index).get("class", "").split()
    ]


def _owner(
    document: SnapshotDocument, lines: int, by_place: dict[int, dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the node of the editor around some lines, or of the text field in it."""
    editor = document.parents[lines]
    while editor >= 0 and EDITOR_CLASS not in document.attributes(editor).get("class", "").split():
        editor = document.parents[editor]
    if editor < 0:
        return None
    candidates = [editor, *_below(document, editor)]
    owned = (by_place[index] for index in candidates if index in by_place)
    return next((node for node in owned if node["role"]["value"] in FIELD_ROLES), None)


def _below(document: SnapshotDocument, index: int) -> list[int]:
    """List all nodes in an element, in the order of the document."""
    found: list[int] = []
    stack = list(reversed(document.children[index]))
    while stack:
        found.append(stack.pop())
        stack.extend(reversed(document.children[found[-1]]))
    return found


def _drawn(document: SnapshotDocument, lines: int) -> str:
    """Return the lines from top to bottom: an editor reuses their elements in any order."""
    placed = [(box[1], line) for line in document.children[lines] if (box := document.box(line))]
    return "\n".join(_text(document, line) for _, line in sorted(placed))


def _text(document: SnapshotDocument, line: int) -> str:
    texts = (document.value(i) for i in _below(document, line) if document.kinds[i] == TEXT)
    return "".join(texts).replace("\N{NO-BREAK SPACE}", " ").rstrip()
