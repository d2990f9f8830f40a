"""BrowserGym observation of the active tab, built from one capture of the page."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.pipe import MAX_CONTENT_CHARS
from oh_jupyter.browser.worker.drawn_text import add_drawn_text
from oh_jupyter.browser.worker.marks import (
    CLICKABLE_BY_NATURE,
    MARKED_BY_TAG_ALONE,
    MARKED_TAGS,
    MIN_AREA_PX2,
    draw_marks,
    mark_elements,
)
from oh_jupyter.browser.worker.page_text import to_text
from oh_jupyter.browser.worker.snapshot import CapturedFrame, SnapshotDocument, match_elements

if TYPE_CHECKING:
    from oh_jupyter.browser.worker.session import BrowserSession

PROBE_PARTS = frozenset({"set_of_marks", "extra_element_properties", "focused_element_bid"})
SCREENSHOT_PARTS = frozenset({"screenshot", "set_of_marks"})
SCREENSHOT_TIMEOUT_SECONDS = 10.0
MAX_TEXT_CHARS = 25_000
"""Characters of one excerpt from the text of a large page."""
MAX_CAPTURES = 3
"""Captures of a page that changes during each capture."""


async def observe(
    session: BrowserSession, include: Collection[str], nearby: bool = False
) -> dict[str, Any]:
    """Observe the active tab; omitted parts are empty, ``nearby`` trims a large page."""
    parts = set(include)
    for _ in range(MAX_CAPTURES - 1):
        observation, is_consistent = await _observe_once(session, parts, nearby)
        if is_consistent:
            return observation
    return (await _observe_once(session, parts, nearby))[0]


async def _observe_once(
    session: BrowserSession, parts: set[str], nearby: bool
) -> tuple[dict[str, Any], bool]:
    """Return one observation, and whether it shows a single state of the page."""
    inspector = await session.inspector()
    if session.tracker.has_long_text(session.page):
        inspector.expect_long_text()
    is_tree = "axtree_object" in parts and not parts & {"dom_object", "text_content"}
    picture = _screenshot(session, inspector.session) if parts & SCREENSHOT_PARTS else _empty()
    capture = (
        inspector.capture(
            probe=bool(parts & PROBE_PARTS),
            accessibility="axtree_object" in parts,
            nearby=nearby,
            max_tree_chars=MAX_CONTENT_CHARS if is_tree else 0,
        )
        if parts - {"screenshot"}
        else _empty()
    )
    titles = asyncio.gather(*(_title(page) for page in session.tabs))
    screenshot, root, tab_titles = await asyncio.gather(picture, capture, titles)
    tabs = session.tabs
    page = session.page
    observation: dict[str, Any] = {
        "url": page.url,
        "open_pages_urls": [tab.url for tab in tabs],
        "open_pages_titles": tab_titles,
        "active_page_index": tabs.index(page) if page in tabs else 0,
        "screenshot": screenshot if "screenshot" in parts else "",
        "set_of_marks": "",
        "dom_object": {},
        "axtree_object": {"nodes": []},
        "extra_element_properties": {},
        "focused_element_bid": "",
        "text_content": "",
        "goal": "",
        "goal_object": [],
        "chat_messages": list(session.messages),
    }
    if not isinstance(root, CapturedFrame):
        return observation, True
    if root.probe and "leftOut" in root.probe:
        observation["left_out"] = root.probe["leftOut"]
        if "text_content" in parts:
            excerpt = await inspector.page_text(session.text_start, MAX_TEXT_CHARS)
            observation["text_content"] = excerpt.pop("text")
            observation["text_range"] = excerpt
        parts = parts - {"text_content", "dom_object"}
    await _describe(observation, root, screenshot, parts)
    return observation, inspector.is_consistent(_walk(root))


async def _empty() -> str:
    return ""


async def _title(page: Any) -> str:
    try:
        title: str = await asyncio.wait_for(page.title(), 2)
    except Exception:  # the page navigates, hangs or closes
        return ""
    return title


async def _screenshot(session: BrowserSession, devtools: Any) -> str:
    """Take a screenshot of the viewport without Playwright's waits, which the step already did."""
    try:
        async with asyncio.timeout(SCREENSHOT_TIMEOUT_SECONDS):
            if session.settings.device:
                # Only Playwright's own session knows the pixel density of a device.
                picture = await session.page.screenshot(caret="initial", timeout=0)
                return f"data:image/png;base64,{base64.b64encode(picture).decode()}"
            parameters = {"format": "png", "optimizeForSpeed": True}
            response = await devtools.send("Page.captureScreenshot", parameters)
    except TimeoutError:
        return ""
    return f"data:image/png;base64,{response['data']}"


async def _describe(
    observation: dict[str, Any], root: CapturedFrame, screenshot: str, parts: set[str]
) -> None:
    """Add the requested parts to an observation."""
    frames = _walk(root)
    text = None
    if "text_content" in parts:
        inner = {
            (id(frame.document), index): child.document
            for frame in frames
            for index, child in frame.children.items()
        }
        text = asyncio.to_thread(to_text, root.document, inner)
    properties = _properties(frames) if parts & PROBE_PARTS else {}
    marks = None
    if "set_of_marks" in parts:
        width = root.probe["viewport"][0] if root.probe else 0.0
        marks = asyncio.to_thread(
            draw_marks, screenshot, properties, viewport_width=width, inactive=_inactive(frames)
        )
    if "extra_element_properties" in parts:
        observation["extra_element_properties"] = properties
    if "focused_element_bid" in parts:
        observation["focused_element_bid"] = _focused(root)
    texts = await asyncio.gather(text or _empty(), marks or _empty())
    observation["text_content"] = texts[0] or observation["text_content"]
    observation["set_of_marks"] = texts[1]
    if "dom_object" in parts:
        observation["dom_object"] = _merge_documents(root)
    if "axtree_object" in parts:
        await asyncio.gather(*(frame.tree for frame in frames if frame.tree is not None))
        observation["axtree_object"] = {"nodes": _merge_trees(root)}


def _walk(root: CapturedFrame) -> list[CapturedFrame]:
    frames, stack = [], [root]
    while stack:
        frame = stack.pop()
        frames.append(frame)
        stack.extend(reversed(frame.children.values()))
    return frames


def _properties(frames: list[CapturedFrame]) -> dict[str, dict[str, Any]]:
    properties: dict[str, dict[str, Any]] = {}
    for frame in frames:
        probe, matched = frame.probe, match_elements(frame)
        marked: list[bool] = []
        if probe:
            clicks = {matched[i] for i in frame.document.clickable if i in matched}
            active = [
                bool(flag) or (i in clicks and probe["tags"][i] not in CLICKABLE_BY_NATURE)
                for i, flag in enumerate(probe["pointers"])
            ]
            marked = mark_elements(
                probe["tags"], probe["parents"], probe["boxes"], probe["hits"], active
            )
        left, top = frame.offset
        for index, bid in frame.by_index.items():
            if probe and index in frame.document.closed:
                properties[bid] = _closed_properties(frame, index, probe["viewport"])
                continue
            at = matched.get(index)
            box = probe["boxes"][at] if probe and at is not None else None
            properties[bid] = {
                "visibility": probe["visibilities"][at] if probe and at is not None else 0.0,
                "bbox": [box[0] + left, box[1] + top, box[2], box[3]] if box else None,
                "clickable": index in frame.document.clickable,
                "set_of_marks": marked[at] if at is not None else False,
            }
    return properties


def _inactive(frames: list[CapturedFrame]) -> set[str]:
    """Return the bids of elements that are marked only for their tag and handle no clicks."""
    inactive = set()
    for frame in frames:
        matched = match_elements(frame)
        for index, bid in frame.by_index.items():
            at = matched.get(index)
            is_active = (
                index in frame.document.clickable
                or at is None
                or not frame.probe
                or frame.probe["pointers"][at]
            )
            if frame.document.names[index] in MARKED_BY_TAG_ALONE and not is_active:
                inactive.add(bid)
    return inactive


def _closed_properties(
    frame: CapturedFrame, index: int, viewport: tuple[float, float]
) -> dict[str, Any]:
    """Derive the properties of an element in a closed shadow root from its layout.

    No script can measure such an element.
    """
    box = frame.document.box(index)
    is_clickable = index in frame.document.clickable
    visibility = 0.0
    if box is not None and box[2] * box[3] > 0:
        x, y, width, height = box
        seen_width = max(0.0, min(x + width, viewport[0]) - max(x, 0.0))
        seen_height = max(0.0, min(y + height, viewport[1]) - max(y, 0.0))
        visibility = round(seen_width * seen_height / (width * height), 2)
    is_marked = is_clickable or frame.document.names[index] in MARKED_TAGS
    left, top = frame.offset
    return {
        "visibility": visibility,
        "bbox": [box[0] + left, box[1] + top, box[2], box[3]] if box else None,
        "clickable": is_clickable,
        "set_of_marks": bool(visibility and is_marked and box and box[2] * box[3] >= MIN_AREA_PX2),
    }


def _focused(root: CapturedFrame) -> str:
    """Return the bid of the focused element, through the frames."""
    frame, focused = root, ""
    while frame.probe and frame.probe["focused"] >= 0:
        by_probe_index = {at: index for index, at in match_elements(frame).items()}
        index = by_probe_index.get(frame.probe["focused"])
        if index is None:
            return focused
        focused = frame.by_index[index]
        if index not in frame.children:
            return focused
        frame = frame.children[index]
    return focused


def _merge_trees(root: CapturedFrame) -> list[dict[str, Any]]:
    """Join the accessibility trees of all frames, with bids on their nodes."""
    merged: list[dict[str, Any]] = []
    for frame in _walk(root):
        prefix = f"{frame.bids.prefix}-" if frame.bids.prefix else ""
        bids = {frame.document.backend_ids[i]: bid for i, bid in frame.by_index.items()}
        roots = {
            child.bids.prefix: f"{child.bids.prefix}-{child.accessibility[0]['nodeId']}"
            for child in frame.children.values()
            if child.accessibility
        }
        # Inline text boxes, a quarter of all nodes, only repeat their parent's text.
        nodes = [n for n in frame.accessibility if n["role"]["value"] != "InlineTextBox"]
        nodes += _add_inline_elements(frame, nodes)
        add_drawn_text(frame.document, nodes)
        present = {node["nodeId"] for node in nodes}
        for node in nodes:
            children = [prefix + c for c in node.get("childIds", ()) if c in present]
            bid = bids.get(node.get("backendDOMNodeId", -1))
            if bid is not None:
                node["browsergym_id"] = bid
                if bid in roots:
                    children = [roots[bid]]
            node["childIds"] = children
            node["nodeId"] = prefix + node["nodeId"]
            if node.get("parentId") in present:
                node["parentId"] = prefix + node["parentId"]
        owner = next(
            (n["nodeId"] for n in merged if n.get("browsergym_id") == frame.bids.prefix), None
        )
        if nodes and owner is not None:
            nodes[0]["parentId"] = owner
        merged.extend(nodes)
    return merged


def _add_inline_elements(frame: CapturedFrame, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert the inline elements that browsers omit between texts and their blocks; return them.

    The visibility of a text depends on its own element, not on the surrounding block.
    """
    document = frame.document
    indices = {backend_id: index for index, backend_id in enumerate(document.backend_ids)}
    by_id = {node["nodeId"]: node for node in nodes}
    at = {id_: indices.get(node.get("backendDOMNodeId", -1), -1) for id_, node in by_id.items()}
    missing = set()
    for id_, node in by_id.items():
        if node["role"]["value"] == "StaticText" and at[id_] >= 0:
            name = by_id.get(node.get("parentId", ""), {}).get("name", {}).get("value", "")
            if node.get("name", {}).get("value", "") not in name:
                missing.add(document.parents[at[id_]])
    missing = (missing & frame.by_index.keys()) - set(at.values())
    present = {-1, *at.values()}
    added: dict[int, dict[str, Any]] = {}
    for node in nodes if missing else ():
        children, node["childIds"] = node.get("childIds", []), []
        parents = {at[node["nodeId"]]: node}
        for child in children:
            chain, above = [], document.parents[at[child]] if at.get(child, -1) >= 0 else -1
            while above not in parents and above not in present:
                chain += [above] if above in missing and above not in added else []
                above = document.parents[above]
            owner = parents.get(above, node)
            for index in reversed(chain if above in parents else ()):
                added[index] = parents[index] = _inline_node(document.backend_ids[index], owner)
                owner = parents[index]
            owner["childIds"].append(child)
            if child in by_id:
                by_id[child]["parentId"] = owner["nodeId"]
    return list(added.values())


def _inline_node(backend_id: int, owner: dict[str, Any]) -> dict[str, Any]:
    """Add an ignored node for an inline element to its parent's children."""
    node_id = f"inline-{backend_id}"
    owner["childIds"].append(node_id)
    return {
        "nodeId": node_id, "ignored": True, "role": {"value": "generic"}, "name": {"value": ""},
        "properties": [], "childIds": [], "parentId": owner["nodeId"],
        "backendDOMNodeId": backend_id,
    }  # fmt: skip


def _merge_documents(root: CapturedFrame) -> dict[str, Any]:
    """Join the snapshots of all frames into one, with a shared string table."""
    strings: list[str] = []
    bases: dict[int, int] = {}
    documents: list[dict[str, Any]] = []
    frames = _walk(root)
    numbers = {id(frame): number for number, frame in enumerate(frames)}
    for frame in frames:
        document = frame.document
        document.write_attributes(frame.by_index)
    for frame in frames:
        document = frame.document
        key = id(document.strings)
        if key not in bases:
            bases[key] = len(strings)
            strings.extend(document.strings)
        data = document.data if bases[key] == 0 else _shifted(document, bases[key])
        links = {index: numbers[id(child)] for index, child in frame.children.items()}
        data["nodes"]["contentDocumentIndex"] = {
            "index": list(links),
            "value": list(links.values()),
        }
        documents.append(data)
    return {"documents": documents, "strings": strings}


STRING_COLUMNS = ("nodeName", "nodeValue")
SPARSE_STRING_COLUMNS = (
    "shadowRootType", "textValue", "inputValue", "pseudoType", "pseudoIdentifier",
    "currentSourceURL", "originURL",
)  # fmt: skip
DOCUMENT_STRINGS = (
    "documentURL", "title", "baseURL", "contentLanguage", "encodingName", "publicId",
    "systemId", "frameId",
)  # fmt: skip


def _shifted(document: SnapshotDocument, base: int) -> dict[str, Any]:
    """Copy a document from another session, with its string indices shifted by ``base``."""

    def shift(values: list[int]) -> list[int]:
        return [value + base if value >= 0 else value for value in values]

    data = dict(document.data)
    nodes = dict(data["nodes"])
    for name in STRING_COLUMNS:
        nodes[name] = shift(nodes[name])
    nodes["attributes"] = [shift(row) for row in nodes["attributes"]]
    for name in SPARSE_STRING_COLUMNS:
        if name in nodes:
            nodes[name] = {**nodes[name], "value": shift(nodes[name]["value"])}
    for name in DOCUMENT_STRINGS:
        if isinstance(data.get(name), int) and data[name] >= 0:
            data[name] += base
    data["nodes"] = nodes
    layout = dict(data["layout"])
    layout["text"] = shift(layout["text"])
    layout["styles"] = [shift(row) for row in layout["styles"]]
    data["layout"] = layout
    return data
