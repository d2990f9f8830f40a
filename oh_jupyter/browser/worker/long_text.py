"""Accessibility tree of a page with a very long text.

Below a text, Chromium lists each of its drawn lines, in time that grows with the square of their
number: four seconds for one megabyte, minutes for ten. The observation drops those lines, so for
such a page the tree is fetched around its long texts, which the DOM snapshot contains anyway.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from oh_jupyter.browser.worker.devtools import full_tree
from oh_jupyter.browser.worker.nearby import partial_tree, partial_trees, text_node
from oh_jupyter.browser.worker.snapshot import ELEMENT, SnapshotDocument

LONG_TEXT_CHARS = 50_000
"""Characters above which a text is long; its lines take Chromium less than a tenth of a second."""
WHITE_SPACE = r"""function () {
  const element = this.parentElement || this.getRootNode().host;
  const style = getComputedStyle(element);
  if (style.whiteSpaceCollapse !== "collapse") return null;
  const isDrawn = (at) => {
    const range = document.createRange();
    range.setStart(this, at);
    range.setEnd(this, at + 1);
    return range.getBoundingClientRect().width > 0;
  };
  const drawn = [isDrawn(0), isDrawn(this.length - 1)];
  const text = this.data.replace(/[ \t\n\r\f]+/g, " ").trim().toLowerCase();
  const rendered = (this.parentElement?.innerText ?? "").toLowerCase();
  const at = rendered.indexOf(text);
  if (at < 0) return drawn;
  const endsInSpace = (node) => {
    for (; node; node = node.previousSibling) {
      const text = node.nodeType === Node.TEXT_NODE ? node.data : node.innerText;
      if (text) return /[ \t\n\r\f]$/.test(text);
      if (node.getBoundingClientRect?.().width) return false;
    }
    return false;
  };
  return [
    drawn[0] || (rendered[at - 1] === " " && !endsInSpace(this.previousSibling)),
    drawn[1] || rendered[at + text.length] === " ",
  ];
}"""
"""Script that returns whether a text's first and last character remain if white space collapses.

A space where a line breaks is not drawn but belongs to it: line breaks depend on fonts, and the
accessibility tree does not.
"""


class LongTexts(NamedTuple):
    """A document with its long texts, by node index."""

    document: SnapshotDocument
    texts: dict[int, str]


def long_texts(snapshot: dict[str, Any]) -> dict[str, LongTexts]:
    """Return the documents of a snapshot that draw long texts, by frame id."""
    strings = snapshot["strings"]
    long = {number for number, text in enumerate(strings) if len(text) > LONG_TEXT_CHARS}
    drawing = [
        each for each in snapshot["documents"] if not long.isdisjoint(each["layout"]["text"])
    ]
    documents = [SnapshotDocument(data, strings) for data in drawing] if long else []
    return {
        document.frame_id: LongTexts(
            document,
            {i: text for i, text in document.drawn_texts().items() if len(text) > LONG_TEXT_CHARS},
        )
        for document in documents
    }


def trees_around(
    session: Any, frames: Iterable[str], long: Mapping[str, LongTexts]
) -> dict[str, asyncio.Task[list[dict[str, Any]]]]:
    """Start to fetch the accessibility nodes of frames, without the lines of long texts."""
    return partial_trees(
        session,
        {
            frame: _tree_around(session, *long[frame])
            if frame in long
            else full_tree(session, frame)
            for frame in frames
        },
    )


async def _tree_around(
    session: Any, document: SnapshotDocument, texts: dict[int, str]
) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of a document, with its long texts from the snapshot."""
    ids = document.backend_ids
    roots, spine, children = _divide(document, texts)
    showing = asyncio.gather(*(_as_shown(session, ids[i], text) for i, text in texts.items()))
    tree = partial_tree(session, document.frame_id, roots, spine, document.parents, ids, children)
    nodes, shown = await tree, await showing
    by_element = {node.get("backendDOMNodeId"): node for node in nodes}
    places = {by_element[id_]["nodeId"]: i for i, id_ in enumerate(ids) if id_ in by_element}
    for index, text in zip(texts, shown, strict=True):
        owner = by_element.get(ids[document.parents[index]])
        if owner is None or _is_hidden(owner):
            continue
        node = text_node(f"text-{ids[index]}", text, owner) | {"backendDOMNodeId": ids[index]}
        nodes.append(node)
        places[node["nodeId"]] = index
        children = owner["childIds"]
        before = (at for at, child in enumerate(children) if places.get(child, -1) > index)
        children.insert(next(before, len(children)), node["nodeId"])
    return nodes


def _is_hidden(node: dict[str, Any]) -> bool:
    """Return whether a node and its content are hidden from assistive technology."""
    reasons = {each["name"] for each in node.get("ignoredReasons", ())}
    return not reasons.isdisjoint({"ariaHiddenElement", "ariaHiddenSubtree"})


def _divide(
    document: SnapshotDocument, texts: Collection[int]
) -> tuple[list[int], list[int], dict[int, list[int]]]:
    """Return the nodes beside long texts, the elements around them, and the drawn children."""
    drawn = document.with_ancestors(document.data["layout"]["nodeIndex"])
    around = document.with_ancestors(texts) - set(texts)
    children = {
        index: [child for child in document.children[index] if child in drawn] for index in drawn
    }
    beside = [child for index in sorted(around) for child in children[index]]
    roots = [child for child in beside if child not in around and child not in texts]
    spine = [index for index in sorted(around) if document.kinds[index] == ELEMENT]
    return roots, spine, children


async def _as_shown(session: Any, backend_id: int, text: str) -> str:
    """Return the text of a text node without the white space that is not drawn."""
    try:
        resolved = await session.send("DOM.resolveNode", {"backendNodeId": backend_id})
        object_id = resolved["object"]["objectId"]
        response = await session.send(
            "Runtime.callFunctionOn",
            {"objectId": object_id, "functionDeclaration": WHITE_SPACE, "returnByValue": True},
        )
        await session.send("Runtime.releaseObject", {"objectId": object_id})
    except Exception:  # the node disappeared in between
        return text
    drawn = response["result"].get("value")
    if drawn is None:
        return text
    text = re.sub(r"[ \t\n\r\f]+", " ", text)
    text = text if drawn[0] else text.removeprefix(" ")
    return text if drawn[1] else text.removesuffix(" ")
