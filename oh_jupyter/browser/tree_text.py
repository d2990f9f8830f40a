"""Accessibility tree as text for agents: one line per node, indented by tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oh_jupyter.browser.channel.addresses import (
    data_url_rest,
    ends_in_data_url,
    shortened_url,
    shortened_urls,
)

MIN_VISIBILITY = 0.5
"""Minimum share of a visible element that is in sight."""

MAX_INDENT = 30
"""Maximum number of tabs; deeper lines begin with their level in parentheses instead."""

CUT_CHARS = frozenset({8192, 10_000})
"""Lengths to which Chromium cuts texts and addresses in its tree."""

SKIPPED_ROLES = frozenset({"LineBreak", "InlineTextBox"})
SKIPPED_PROPERTIES = frozenset(
    {"editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"}
)
FLAGS = frozenset({"required", "focused", "atomic"})


def flatten_axtree(
    axtree: Mapping[str, Any],
    properties: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    with_visible: bool = False,
    with_clickable: bool = False,
    skip_generic: bool = True,
    visible_only: bool = False,
) -> str:
    """Format an accessibility tree as text, like BrowserGym's flattened tree.

    Args:
        axtree: ``axtree_object`` of an observation.
        properties: ``extra_element_properties`` of the same observation.
        with_visible: Mark elements that are in sight with ``visible``.
        with_clickable: Mark elements that respond to a click with ``clickable``, except those
            without an area.
        skip_generic: Omit generic nodes without properties, but not their children.
        visible_only: Omit elements that are out of sight, and their text.

    Returns:
        Lines of the form ``[bid] role 'name' value='…', clickable, focused``. Long ``data:``
        URLs are shortened. Lines deeper than ``MAX_INDENT`` begin with their level.
    """
    nodes = {node["nodeId"]: node for node in axtree.get("nodes", ())}
    if not nodes:
        return ""
    extra = properties or {}
    lines: list[str] = []
    seen: set[str] = set()
    in_address = False
    # node id, depth, name of the parent, whether the parent was filtered out
    stack: list[tuple[str, int, str, bool]] = [(next(iter(nodes)), 0, "", False)]
    while stack:
        node_id, depth, parent_name, parent_filtered = stack.pop()
        node = nodes.get(node_id)
        if node is None or node_id in seen:
            continue
        seen.add(node_id)
        element = extra.get(node.get("browsergym_id") or "", {})
        # Elements without a measurement count as out of sight; nodes without a bid always stay.
        visibility = element.get("visibility", 0.0)
        has_bid = "browsergym_id" in node and bool(extra)
        filtered = visible_only and has_bid and visibility < MIN_VISIBILITY
        name = str(_value(node, "name") or "")
        if _value(node, "role") == "StaticText":
            # Browsers split long text, and URLs in it, into several nodes.
            rest = data_url_rest(name) if in_address else name
            in_address = ends_in_data_url(name) or (in_address and not rest)
            if not rest and name:
                continue
            name = rest
        elif _value(node, "role") != "InlineTextBox":
            in_address = False
        attributes = _attributes(node)
        if _is_shown(node, attributes, name, parent_name, parent_filtered, skip_generic) and (
            not filtered
        ):
            if with_visible and element and element["visibility"] >= MIN_VISIBILITY:
                attributes.insert(0, "visible")
            if with_clickable and element and element["clickable"] and _has_area(element):
                attributes.insert(0, "clickable")
            lines.append(_indent(depth) + _line(node, name, attributes))
            depth += 1
        for child in reversed(node.get("childIds", ())):
            stack.append((child, depth, name, filtered))
    return "\n".join(lines)


def _has_area(element: Mapping[str, Any]) -> bool:
    """Return whether a click can hit an element, as far as it was measured."""
    box = element.get("bbox")
    return box is None or box[2] * box[3] > 0


def _indent(depth: int) -> str:
    return "\t" * depth if depth <= MAX_INDENT else f"({depth}) "


def _short(text: str) -> str:
    """Shorten ``data:`` URLs in a text, or the text itself if it is one."""
    is_cut = len(text) in CUT_CHARS
    return shortened_urls(shortened_url(text, is_cut=is_cut), is_cut=is_cut)


def _value(node: Mapping[str, Any], key: str) -> Any:
    return node.get(key, {}).get("value")


def _attributes(node: Mapping[str, Any]) -> list[str]:
    shown = []
    for item in node.get("properties", ()):
        name, holder = item["name"], item.get("value", {})
        if name in SKIPPED_PROPERTIES or "value" not in holder:
            continue
        if name in FLAGS:
            if holder["value"]:
                shown.append(name)
        else:
            value = holder["value"]
            if isinstance(value, str):
                value = _short(value)
            shown.append(f"{name}={value!r}")
    return shown


def _is_shown(
    node: Mapping[str, Any],
    attributes: list[str],
    name: str,
    parent_name: str,
    parent_filtered: bool,
    skip_generic: bool,
) -> bool:
    role = _value(node, "role")
    if role in SKIPPED_ROLES or "name" not in node or (role == "generic" and node.get("ignored")):
        return False
    if role == "StaticText":
        return not parent_filtered and name not in parent_name
    return not (skip_generic and role == "generic" and not attributes)


def _line(node: Mapping[str, Any], name: str, attributes: list[str]) -> str:
    role = _value(node, "role")
    name = _short(name.strip())
    text = f"{role}" if role == "generic" and not name else f"{role} {name!r}"
    bid = node.get("browsergym_id")
    if bid is not None:
        text = f"[{bid}] {text}"
    value = _value(node, "value")
    if value is not None:
        value = _short(value) if isinstance(value, str) else value
        text += f" value={value!r}"
    return ", ".join([text, *attributes])
