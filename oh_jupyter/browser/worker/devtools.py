"""Requests to a DevTools session that do not depend on the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession


async def send_large(session: Any, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Send a command with a large response.

    Playwright's public method searches the response for its own objects, which never occur; for
    the tree of 5,000 elements, that takes a third of the whole step. If the internal method does
    not have the expected parameters, this falls back to the public one.
    """
    inner = getattr(session, "_impl_obj", None)
    names = set(signature(inner.send).parameters) if inner is not None else set()
    if inner is not None and {"method", "params"} <= names:
        extra = {"timeout": None} if "timeout" in names else {}
        response: dict[str, Any] = await inner.send(method=method, params=parameters, **extra)
        return response
    response = await session.send(method, parameters)
    return response


async def full_tree(session: Any, frame_id: str) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of a frame."""
    parameters = {"frameId": frame_id}
    try:
        response = await send_large(session, "Accessibility.getFullAXTree", parameters)
    except Exception:  # the frame disappeared in between
        return []
    nodes: list[dict[str, Any]] = response["nodes"]
    return nodes


def accessibility_trees(
    session: Any, frames: Iterable[str]
) -> dict[str, asyncio.Task[list[dict[str, Any]]]]:
    """Start to fetch the accessibility nodes of frames."""
    return {frame: asyncio.ensure_future(full_tree(session, frame)) for frame in frames}


async def detach(session: CDPSession) -> None:
    """Detach a session, which may have ended already."""
    with contextlib.suppress(Exception):
        await session.detach()


async def read_loaders(session: Any) -> dict[str, str]:
    """Return the frames of a session, the outermost first, with their documents' loader ids."""
    loaders: dict[str, str] = {}
    branches = [(await session.send("Page.getFrameTree"))["frameTree"]]
    while branches:
        branch = branches.pop()
        loaders[branch["frame"]["id"]] = branch["frame"].get("loaderId", "")
        branches.extend(branch.get("childFrames", ()))
    return loaders
