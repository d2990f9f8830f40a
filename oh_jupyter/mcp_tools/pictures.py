"""Pictures in results, at a size that a model can use."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
from typing import Any

from oh_jupyter.mcp_tools.results import Result, text

MAX_SIDE_PIXELS = 1568
"""Longest side of a picture; models scale larger ones down."""

MAX_DATA_CHARS = 1_000_000
"""Maximum length of a picture in base64."""

_PNG_START = b"\x89PNG\r\n\x1a\n"


async def with_bounded_pictures(result: Result) -> Result:
    """Return a result whose pictures are scaled down if they are large."""
    if not any(map(_is_large, result["content"])):
        return result
    content: list[dict[str, Any]] = []
    for block in result["content"]:
        large = _is_large(block)
        content += await asyncio.to_thread(_bounded, block) if large else [block]
    return {**result, "content": content}


def _is_large(block: dict[str, Any]) -> bool:
    if block["type"] != "image":
        return False
    return len(block["data"]) > MAX_DATA_CHARS or max(_png_size(block)) > MAX_SIDE_PIXELS


def _png_size(block: dict[str, Any]) -> tuple[int, int]:
    """Return width and height of a PNG, or (0, 0)."""
    try:
        head = base64.b64decode(block["data"][:32])
    except ValueError:
        return 0, 0
    if not head.startswith(_PNG_START) or len(head) < 24:  # it may be incomplete
        return 0, 0
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def _bounded(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a large picture scaled down, with a note; without Pillow, a note may replace it."""
    try:
        from PIL import Image

        with Image.open(io.BytesIO(base64.b64decode(block["data"]))) as picture:
            size = picture.size
            picture.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS))
            kind, data = _encoded(picture)
    except Exception:  # of any kind, from decoders of broken pictures and for bombs of pixels
        if len(block["data"]) <= MAX_DATA_CHARS:
            return [block]
        return [text("[A picture is too large to show. Make or save it at a smaller size.]")]
    shown = {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode()}
    note = f"[The picture is shown at {picture.width} x {picture.height} of {size[0]} x {size[1]}.]"
    return [shown, text(note)]


def _encoded(picture: Any) -> tuple[str, bytes]:
    """Return a picture as PNG, or as JPEG if that would be too long."""
    target = io.BytesIO()
    picture.save(target, "PNG")
    if len(target.getvalue()) * 4 / 3 <= MAX_DATA_CHARS:
        return "image/png", target.getvalue()
    target = io.BytesIO()
    picture.convert("RGB").save(target, "JPEG", quality=85)
    return "image/jpeg", target.getvalue()
