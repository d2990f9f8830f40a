"""Accessibility tree of selected subtrees, with the elements around them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any


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
