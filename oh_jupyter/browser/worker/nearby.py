"""A page too large to be described as a whole: what is in the viewport and a screen around it.

Snapshot and accessibility tree of 20,000 elements take the browser itself ten seconds, and those
of 50 MB of text take gigabytes; so such a page is asked only about the elements that ``probe.js``
has found nearby, and for its text piece by piece. Of a smaller page whose tree is longer than what
an agent reads, only the tree is cut like this: that of 5,000 elements is most of a step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from oh_jupyter.browser.worker.snapshot import SnapshotDocument

MAX_ELEMENTS, MAX_CHARS = 6_000, 1_000_000
"""Elements and characters of text from which on a page is too large to be described as a whole."""
MAX_DRAWN = 500
"""Elements nearby that are described, the viewport's first."""
MIN_LINE_CHARS = 12
"""Characters of a line of the tree besides the name, at the least."""
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
"""What is too large to be described as a whole: the page, its tree, or nothing."""
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
    """Look up DevTools' lasting ids of elements."""
    described = await asyncio.gather(
        *(session.send("DOM.describeNode", {"objectId": each}) for each in objects)
    )
    return [answer["node"]["backendNodeId"] for answer in described]


def nearby_document(frame_id: str, probe: dict[str, Any], ids: list[int]) -> SnapshotDocument:
    """Write down the elements nearby as a snapshot that holds nothing else."""
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


@contextlib.asynccontextmanager
async def accessibility_enabled(session: Any) -> AsyncIterator[None]:
    """Keep the accessibility domain of a session enabled, once for all of its frames.

    Chromium never answers a query that another frame's ``Accessibility.disable`` overtakes.
    """
    with contextlib.suppress(Exception):  # the page went away in between
        await session.send("Accessibility.enable")
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            await session.send("Accessibility.disable")


async def nearby_tree(
    session: Any,
    frame_id: str,
    probe: dict[str, Any],
    objects: Mapping[int, str],
    ids: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of the elements nearby, below the document's own.

    The session's accessibility domain has to be enabled.
    """
    with contextlib.suppress(Exception):  # the frame went away in between
        root, *answers = await asyncio.gather(
            session.send("Accessibility.getRootAXNode", {"frameId": frame_id}),
            *(
                session.send("Accessibility.queryAXTree", {"objectId": objects[place]})
                for place in probe["roots"]
            ),
            *(
                session.send(
                    "Accessibility.getPartialAXTree",
                    {"objectId": objects[place], "fetchRelatives": False},
                )
                for place in probe["spine"]
            ),
        )
        places = [*probe["roots"], *probe["spine"]]
        found = {place: answer["nodes"] for place, answer in zip(places, answers, strict=True)}
        return _joined(root["node"], found, probe, ids)
    return []


def _joined(
    root: dict[str, Any],
    found: dict[int, list[dict[str, Any]]],
    probe: dict[str, Any],
    ids: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Join the nodes of subtrees and of the elements around them into one tree."""
    nodes = {root["nodeId"]: root}
    of_element: dict[int, dict[str, Any]] = {}
    for place in sorted(found):
        own = next((n for n in found[place] if n.get("backendDOMNodeId") == ids[place]), None)
        if own is not None:
            of_element[place] = own
        for node in found[place]:
            nodes.setdefault(node["nodeId"], node)
    for node in nodes.values():
        node["childIds"] = [each for each in node.get("childIds", ()) if each in nodes]
    held = {each for node in nodes.values() for each in node["childIds"]}
    for place, node in of_element.items():
        if node["nodeId"] in held:
            continue
        above = probe["parents"][place]
        while above >= 0 and above not in of_element:
            above = probe["parents"][above]
        owner = of_element.get(above, root)
        owner["childIds"].append(node["nodeId"])
        node["parentId"] = owner["nodeId"]
    if probe["inSight"]:
        # Not below its element, most of which is out of sight.
        text = {"role": {"value": "StaticText"}, "name": {"value": probe["inSight"]["text"]}}
        nodes["text"] = {"nodeId": "text", "ignored": False, "properties": [], **text}
        nodes["text"] |= {"childIds": [], "parentId": root["nodeId"]}
        root["childIds"].append("text")
    return list(nodes.values())
