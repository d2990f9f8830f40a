"""Commands to DevTools that need care: large answers, and sessions that may be gone."""

from __future__ import annotations

import contextlib
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

__all__ = ["accessibility_tree", "detach", "send_large"]


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


async def accessibility_tree(session: Any, frame_id: str) -> list[dict[str, Any]]:
    """Fetch the accessibility nodes of a frame."""
    parameters = {"frameId": frame_id}
    try:
        answer = await send_large(session, "Accessibility.getFullAXTree", parameters)
    except Exception:  # the frame went away in between
        return []
    nodes: list[dict[str, Any]] = answer["nodes"]
    return nodes


async def detach(session: CDPSession) -> None:
    """Let go of a session, which may have ended by itself."""
    with contextlib.suppress(Exception):
        await session.detach()
