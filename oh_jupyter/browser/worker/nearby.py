"""Partial capture of large pages: the viewport and one screen around it, and the tree of these.

Snapshot and accessibility tree of 20,000 elements take the browser itself ten seconds, and those
of 50 MB of text take gigabytes. For such a page, the worker captures only the elements that
``probe.js`` finds nearby, and reads the text in excerpts. For a smaller page whose tree is longer
than what an agent reads, it trims only the tree: that of 5,000 elements takes most of a step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from oh_jupyter.browser.worker.snapshot import SnapshotDocument

MAX_ELEMENTS, MAX_CHARS = 6_000, 1_000_000
"""Elements and characters of text above which a page is too large for a full capture."""
MAX_DRAWN = 500
"""Maximum number of nearby elements in a capture, the viewport's first."""
MIN_LINE_CHARS = 12
"""Minimum characters of a line of the tree besides the name."""
TOO_LARGE = f"""((maxTreeChars) => {{
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
  let chars = 0;
  while (chars <= {MAX_CHARS} && walker.nextNode()) chars += walker.currentNode.length;
  const all = [...document.getElementsByTagName("*")];
  if (chars > {MAX_CHARS} || all.length > {MAX_ELEMENTS}) return "page";
  if (!maxTreeChars || !document.body) return "";
  const inViewport = all.filter((element) => {{
    const {{ top, right, bottom, left }} = element.getBoundingClientRect();
    return bottom > top && right > left && bottom > 0 && right > 0 &&
      top < innerHeight && left < innerWidth;
  }});
  const lines = [...document.querySelectorAll("a, button, input, option")].filter(
    (element) => element.checkVisibility({{ visibilityProperty: true }}));
  const treeChars = document.body.innerText.length + {MIN_LINE_CHARS} * lines.length;
  return treeChars > maxTreeChars && inViewport.length <= {MAX_DRAWN} ? "tree" : "";
}})"""
"""Script that returns which part is too large for a full capture: "page", "tree" or ""."""
PAGE_TEXT = """(([start, limit]) => {
  const INLINE = new Set(("a abbr b bdi bdo button cite code em font i ins kbd label mark q s " +
    "samp small span strong sub sup time u var").split(" "));
  const SKIPPED = new Set(["noscript", "script", "style", "template", "title"]);
  const blockOf = (element) => {
    while (element.parentElement && INLINE.has(element.localName)) element = element.parentElement;
    return element;
  };
  const walker = document.createTreeWalker(document.body || document, NodeFilter.SHOW_TEXT);
  let at = 0, text = "", block = null;
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!parent || SKIPPED.has(parent.localName)) continue;
    const from = Math.max(0, start - at), to = Math.min(node.length, start + limit - at);
    if (from < to && node.data.trim() && parent.checkVisibility()) {
      const isNew = blockOf(parent) !== block;
      block = blockOf(parent);
      const piece = node.data.slice(from, to);
      const isKept = getComputedStyle(parent).whiteSpaceCollapse !== "collapse";
      text += (isNew && text ? "\\n" : "") + (isKept ? piece : piece.replace(/\\s+/g, " "));
    }
    at += node.length;
  }
  return { text, start, end: Math.min(at, start + limit), total: at };
})"""
FIND = """((wanted) => {
  const MAX_HITS = 10_000;
  const needle = wanted.toLowerCase(), hits = [];
  const walker = document.createTreeWalker(document.body || document, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && hits.length < MAX_HITS) {
    const node = walker.currentNode, text = node.data.toLowerCase();
    if (!text.includes(needle) || !node.parentElement.checkVisibility()) continue;
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) {
      if (hits.push([node, at]) >= MAX_HITS) break;
    }
  }
  if (!hits.length) return null;
  const last = globalThis.found;
  const number = last && last.wanted === wanted ? (last.number + 1) % hits.length : 0;
  globalThis.found = { wanted, number };
  const [node, at] = hits[number];
  node.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
  const range = document.createRange();
  range.setStart(node, at);
  range.setEnd(node, at + needle.length);
  const box = range.getBoundingClientRect();
  if (box.top < 0 || box.bottom > innerHeight) {
    scrollBy({ top: box.top - innerHeight / 2, behavior: "instant" });
  }
  return [number + 1, hits.length];
})"""
ELEMENT_NODE, DOCUMENT_NODE = 1, 9
CLICKABLE_TAGS = frozenset({"A", "BUTTON", "INPUT", "LABEL", "OPTION", "SELECT", "TEXTAREA"})


async def backend_ids(session: Any, objects: list[str]) -> list[int]:
    """Return the stable DevTools node ids of elements."""
    responses = await asyncio.gather(
        *(session.send("DOM.describeNode", {"objectId": each}) for each in objects)
    )
    return [response["node"]["backendNodeId"] for response in responses]


def nearby_document(frame_id: str, probe: dict[str, Any], ids: list[int]) -> SnapshotDocument:
    """Build a snapshot that contains only the nearby elements."""
    strings = list(dict.fromkeys([frame_id, "#document", *probe["tags"]]))
    numbers = {text: number for number, text in enumerate(strings)}
    clicks = [
        index + 1
        for index, tag in enumerate(probe["tags"])
        if tag in CLICKABLE_TAGS or probe["pointers"][index]
    ]
    nodes = {
        "nodeType": [DOCUMENT_NODE, *[ELEMENT_NODE] * len(ids)],
        "nodeName": [numbers["#document"], *(numbers[tag] for tag in probe["tags"])],
        "nodeValue": [-1] * (len(ids) + 1),
        "attributes": [[] for _ in range(len(ids) + 1)],
        "backendNodeId": [0, *ids],
        "parentIndex": [-1, *(parent + 1 for parent in probe["parents"])],
        "isClickable": {"index": clicks},
    }
    layout: dict[str, Any] = {"nodeIndex": [], "bounds": [], "text": [], "styles": []}
    return SnapshotDocument({"frameId": 0, "nodes": nodes, "layout": layout}, strings)


async def nearby_tree(
    session: Any, frame_id: str, probe: dict[str, Any], ids: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of the nearby elements, below the document's node.

    The caller enables the session's accessibility domain.
    """
    nodes = await partial_tree(
        session, frame_id, probe["roots"], probe["spine"], probe["parents"], ids
    )
    if nodes and probe["inSight"]:
        # Not below its element, most of which is outside the viewport.
        nodes[0]["childIds"].append("text")
        nodes.append(text_node("text", probe["inSight"]["text"], nodes[0]))
    return nodes


@contextlib.asynccontextmanager
async def accessibility_enabled(session: Any) -> AsyncIterator[None]:
    """Keep a session's accessibility domain enabled for all of its frames at once.

    Chromium never responds to a query that another frame's ``Accessibility.disable`` overtakes.
    """
    with contextlib.suppress(Exception):  # the page disappeared in between
        await session.send("Accessibility.enable")
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            await session.send("Accessibility.disable")


def partial_trees(
    session: Any, fetching: Mapping[str, Awaitable[list[dict[str, Any]]]]
) -> dict[str, asyncio.Task[list[dict[str, Any]]]]:
    """Start to fetch the trees of frames that ask with ``partial_tree``."""

    async def fetch() -> dict[str, list[dict[str, Any]]]:
        async with accessibility_enabled(session):
            return dict(zip(fetching, await asyncio.gather(*fetching.values()), strict=True))

    async def tree_of(frame: str) -> list[dict[str, Any]]:
        return (await all_trees)[frame]

    all_trees = asyncio.ensure_future(fetch())
    return {frame: asyncio.ensure_future(tree_of(frame)) for frame in fetching}


async def partial_tree(
    session: Any,
    frame_id: str,
    roots: Sequence[int],
    spine: Sequence[int],
    parents: Sequence[int],
    ids: Mapping[int, int] | Sequence[int],
    children: Mapping[int, Sequence[int]] | None = None,
) -> list[dict[str, Any]]:
    """Fetch the nodes of a frame's subtrees (``roots``) and of their ancestors (``spine``).

    Both are indices into ``parents``, with DevTools node ids in ``ids``. With ``children``, the
    content of a root that has no node of its own is fetched. The first node is the document's.
    The caller enables the session's accessibility domain.
    """

    async def subtree(index: int) -> list[dict[str, Any]]:
        nodes = await _query(session, "queryAXTree", ids[index])
        if nodes or children is None:
            return nodes
        inner = await asyncio.gather(*map(subtree, children[index]))
        return [node for each in inner for node in each]

    try:
        response = await session.send("Accessibility.getRootAXNode", {"frameId": frame_id})
    except Exception:  # the frame disappeared in between
        return []
    trees = await asyncio.gather(
        *map(subtree, roots),
        *(_query(session, "getPartialAXTree", ids[index], fetchRelatives=False) for index in spine),
    )
    return _join(response["node"], dict(zip([*roots, *spine], trees, strict=True)), parents, ids)


async def _query(session: Any, query: str, backend_id: int, **more: bool) -> list[dict[str, Any]]:
    """Return the nodes for one element, as the full tree has them; none if it disappeared."""
    try:
        response = await session.send(
            f"Accessibility.{query}", {"backendNodeId": backend_id, **more}
        )
    except Exception:
        return []
    nodes: list[dict[str, Any]] = response["nodes"]
    for node in nodes:
        if node["ignored"]:
            node["role"] = {"type": "role", "value": "none"}
            node.pop("name", None)
    return nodes


def text_node(node_id: str, text: str, parent: dict[str, Any]) -> dict[str, Any]:
    """Return an accessibility node for a text; it is not yet among its parent's children."""
    return {
        "nodeId": node_id, "ignored": False, "properties": [], "childIds": [],
        "role": {"value": "StaticText"}, "name": {"value": text}, "parentId": parent["nodeId"],
    }  # fmt: skip


def _join(
    root: dict[str, Any],
    trees: dict[int, list[dict[str, Any]]],
    parents: Sequence[int],
    ids: Mapping[int, int] | Sequence[int],
) -> list[dict[str, Any]]:
    """Join the nodes of subtrees and of the elements around them into one tree."""
    nodes = {root["nodeId"]: root}
    by_element: dict[int, dict[str, Any]] = {}
    for index in sorted(trees):
        own = next((n for n in trees[index] if n.get("backendDOMNodeId") == ids[index]), None)
        if own is not None:
            by_element[index] = own
        for node in trees[index]:
            nodes.setdefault(node["nodeId"], node)
    for node in nodes.values():
        node["childIds"] = [each for each in node.get("childIds", ()) if each in nodes]
    attached = {each for node in nodes.values() for each in node["childIds"]}
    for index, node in by_element.items():
        if node["nodeId"] in attached:
            continue
        above = parents[index]
        while above >= 0 and above not in by_element:
            above = parents[above]
        owner = by_element.get(above, root)
        owner["childIds"].append(node["nodeId"])
        node["parentId"] = owner["nodeId"]
    return list(nodes.values())
