"""What a tool gives back, in MCP's words: text, images, errors.

Text is the result: where there is structured content beside it, Claude Code and Codex show
their models that alone, so none of our tools has any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Result", "blob", "failure", "image", "of_observation", "result", "text", "text_alone"]

Result = dict[str, Any]
"""A ``CallToolResult`` of the MCP specification, as JSON."""

_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")


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


def result(*content: dict[str, Any] | None, is_error: bool = False) -> Result:
    """Put a result together.

    Args:
        *content: Content blocks; None is left out.
        is_error: Whether the tool failed.

    Returns:
        The result.
    """
    return {"content": [block for block in content if block], "isError": is_error}


def failure(reason: str) -> Result:
    """A result that says why there is none.

    Args:
        reason: What happened and what to do next.

    Returns:
        The result.
    """
    return result(text(reason), is_error=True)


def text_alone(found: Result) -> Result:
    """The same result without structured content, which is its text if there is no other.

    Args:
        found: The result.

    Returns:
        The result.
    """
    kept = {name: value for name, value in found.items() if name != "structuredContent"}
    if "structuredContent" in found and not found["content"]:
        kept["content"] = [text(json.dumps(found["structuredContent"], ensure_ascii=False))]
    return kept


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
            return result(shown)
    images = [image(str(extras.get(name) or "")) for name in pictures]
    images += [image(url) for url in extras.get("image_urls") or []]
    return result(
        text(_readable(content, extras) or str(observation.get("message", ""))),
        *images,
        is_error=_failed(kind, content, extras),
    )


def _failed(kind: Any, content: str, extras: Mapping[str, Any]) -> bool:
    """Whether nothing came of an Action; a command that ends with another code than 0 did work."""
    if kind == "run":
        metadata = extras.get("metadata") or {}
        # A command that is still running has no code either, but says so at its end.
        started = metadata.get("exit_code") != -1 or bool(metadata.get("suffix"))
        return not started and content.startswith("ERROR:")
    if kind in ("edit", "read"):
        return extras.get("impl_source") == "oh_aci" and content.startswith("ERROR:\n")
    return kind in ("error", "user_rejected") or (kind == "browse" and bool(extras.get("error")))


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
