"""Content blocks as the SDK's own objects, for programs that are built on it."""

from __future__ import annotations

from typing import Any

from mcp import types

__all__ = ["content_objects"]


def content_objects(blocks: list[dict[str, Any]]) -> list[Any]:
    """The objects of texts, pictures and resources."""
    kinds: dict[str, Any] = {
        "text": types.TextContent,
        "image": types.ImageContent,
        "resource": types.EmbeddedResource,
    }
    return [kinds[block["type"]].model_validate(block) for block in blocks]
