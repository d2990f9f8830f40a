"""What a tool gives back, in MCP's words: text, images, structured data, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Result", "blob", "failure", "image", "of_observation", "result", "text"]

Result = dict[str, Any]
"""A ``CallToolResult`` of the MCP specification, as JSON."""

_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")

_NOT_STRUCTURED = {
    "screenshot",
    "set_of_marks",
    "image_urls",
    "dom_object",
    "axtree_object",
    "extra_element_properties",
    "goal_image_urls",
    "old_content",
    "new_content",
    "code",
    "command",
    "_diff_cache",
    "hidden",
}
"""Extras that are pictures, repeat the request, or would fill an agent's context."""


def text(content: str) -> dict[str, Any]:
    """A piece of text.

    Args:
        content: The text.

    Returns:
        A content block.
    """
    return {"type": "text", "text": content}


def image(data_url: str) -> dict[str, Any] | None:
    """A picture.

    Args:
        data_url: The picture as a data URL.

    Returns:
        A content block, or None if it is no data URL of a picture.
    """
    match = _DATA_URL.fullmatch(data_url)
    if match is None or not match["kind"].startswith("image/"):
        return None
    return {"type": "image", "mimeType": match["kind"], "data": "".join(match["data"].split())}


def blob(data_url: str, path: str) -> dict[str, Any] | None:
    """A file that is neither text nor a picture.

    Args:
        data_url: Its contents as a data URL.
        path: The file.

    Returns:
        A content block, or None if it is no data URL.
    """
    match = _DATA_URL.fullmatch(data_url)
    if match is None:
        return None
    resource = {
        "uri": f"file://{path}",
        "mimeType": match["kind"],
        "blob": "".join(match["data"].split()),
    }
    return {"type": "resource", "resource": resource}


def result(
    *content: dict[str, Any] | None,
    structured: Mapping[str, Any] | None = None,
    is_error: bool = False,
) -> Result:
    """Put a result together.

    Args:
        *content: Content blocks; None is left out.
        structured: The same for programs.
        is_error: Whether the tool failed.

    Returns:
        The result.
    """
    found: Result = {"content": [block for block in content if block], "isError": is_error}
    if structured:
        found["structuredContent"] = dict(structured)
    return found


def failure(reason: str) -> Result:
    """A result that says why there is none.

    Args:
        reason: What happened and what to do next.

    Returns:
        The result.
    """
    return result(text(reason), is_error=True)


def of_observation(observation: Mapping[str, Any], pictures: Iterable[str] = ()) -> Result:
    """Translate an Observation.

    Args:
        observation: Its wire form.
        pictures: Names of extras that are shown as images, such as ``screenshot``.

    Returns:
        The result.
    """
    kind = observation.get("observation")
    content = str(observation.get("content", ""))
    extras = dict(observation.get("extras") or {})
    if kind == "mcp":
        return _of_tool(content)
    if kind == "read" and content.startswith("data:"):
        shown = image(content) or blob(content, str(extras.get("path", "")))
        if shown is not None:
            return result(shown, structured=_structured(extras))
    images = [image(str(extras.get(name) or "")) for name in pictures]
    images += [image(url) for url in extras.get("image_urls") or []]
    return result(
        text(_readable(content, extras) or str(observation.get("message", ""))),
        *images,
        structured=_structured(extras),
        is_error=kind in ("error", "user_rejected") or content.startswith("ERROR:\n"),
    )


def _of_tool(content: str) -> Result:
    """The result of a tool of the kernel, which is in the Observation as JSON."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return failure(content)
    if "error" in found:
        return failure(str(found["error"]))
    known = {"content", "structuredContent", "isError", "_meta"}
    answer = {name: value for name, value in found.items() if name in known and value is not None}
    if found.get("meta"):
        answer["_meta"] = found["meta"]
    return {"content": [], **answer}


def _readable(content: str, extras: Mapping[str, Any]) -> str:
    """The text as OpenHands shows it to an agent: a command's with what it says about itself."""
    metadata = extras.get("metadata")
    if not isinstance(metadata, Mapping):
        return content
    parts = f"{metadata.get('prefix') or ''}{content}{metadata.get('suffix') or ''}"
    if metadata.get("working_dir"):
        parts += f"\n[Current working directory: {metadata['working_dir']}]"
    if metadata.get("py_interpreter_path"):
        parts += f"\n[Python interpreter: {metadata['py_interpreter_path']}]"
    if metadata.get("exit_code", -1) != -1:
        parts += f"\n[Command finished with exit code {metadata['exit_code']}]"
    return parts.strip()


def _structured(extras: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in extras.items():
        if name == "metadata" and isinstance(value, Mapping):
            found["exit_code"] = value.get("exit_code")
            found["working_dir"] = value.get("working_dir")
        elif name not in _NOT_STRUCTURED and value not in (None, "", []):
            found[name] = value
    return found
