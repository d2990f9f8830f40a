"""What is asked of a DevTools session, whatever the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession


async def send_large(session: Any, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Send a command whose answer is large.

    Playwright's public method walks the answer in search of its own objects, which are never
    there; for the tree of 5,000 elements that is a third of the whole step. Where the method
    below it is not as expected, the public one does.
    """
    inner = getattr(session, "_impl_obj", None)
    names = set(signature(inner.send).parameters) if inner is not None else set()
    if inner is not None and {"method", "params"} <= names:
        extra = {"timeout": None} if "timeout" in names else {}
        answer: dict[str, Any] = await inner.send(method=method, params=parameters, **extra)
        return answer
    answer = await session.send(method, parameters)
    return answer


async def _tree(session: Any, frame_id: str) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of a frame."""
    parameters = {"frameId": frame_id}
    try:
        answer = await send_large(session, "Accessibility.getFullAXTree", parameters)
    except Exception:  # the frame went away in between
        return []
    nodes: list[dict[str, Any]] = answer["nodes"]
    return nodes


def accessibility_trees(
    session: Any, frames: Iterable[str]
) -> dict[str, asyncio.Task[list[dict[str, Any]]]]:
    """Ask for the accessibility nodes of frames."""
    return {frame: asyncio.ensure_future(_tree(session, frame)) for frame in frames}


async def detach(session: CDPSession) -> None:
    """Let go of a session, which may have ended by itself."""
    with contextlib.suppress(Exception):
        await session.detach()


async def read_loaders(session: Any) -> dict[str, str]:
    """List the frames of a session, the outermost first, with the identity of their documents."""
    loaders: dict[str, str] = {}
    branches = [(await session.send("Page.getFrameTree"))["frameTree"]]
    while branches:
        branch = branches.pop()
        loaders[branch["frame"]["id"]] = branch["frame"].get("loaderId", "")
        branches.extend(branch.get("childFrames", ()))
    return loaders
