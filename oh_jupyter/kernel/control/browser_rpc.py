"""Operations for a person who watches the browser and uses it; no program can ask for them."""

from __future__ import annotations

import base64
from typing import Any

from oh_jupyter.errors import BrowserError, WireError
from oh_jupyter.kernel.control.rpc import Reply, Request, operation

__all__: list[str] = []

ACT_TIMEOUT_SECONDS = 60.0
MAX_WATCH_SECONDS = 60.0


@operation("watch_browser")
async def _watch(request: Request) -> Reply:
    """Wait up to ``wait`` seconds for another picture than ``known``; the body is a JPEG."""
    executor = request.runtime.executor
    seconds, known = request.fields.get("wait", 0), request.fields.get("known", -1)
    if not all(isinstance(value, int | float) for value in (seconds, known)):
        raise WireError("'wait' and 'known' must be numbers", "wait")
    takeover = executor.takeover
    state: dict[str, Any] = {"number": -1, "url": "", "tabs": [], "session": ""}
    picture = b""
    if executor.has_browser:
        takeover.seen()
        browsers = executor.browsers
        state["session"] = browsers.name
        watch = browsers.current.watch
        seen = await executor.in_thread(watch, known, min(seconds, MAX_WATCH_SECONDS))
        takeover.seen()
        if seen is not None:
            picture = base64.b64decode(seen.pop("frame"))
            state |= seen
    return Reply({**state, "held": takeover.is_held}, picture or None)


@operation("use_browser")
async def _use(request: Request) -> Reply:
    """Carry out a person's actions; agents wait from now on until it is handed back."""
    executor = request.runtime.executor
    if not executor.settings.enable_browser:
        raise BrowserError("The setting enable_browser does not allow a browser here.")
    executor.takeover.take()
    error = await executor.in_thread(
        executor.browser.act, request.text("actions"), ACT_TIMEOUT_SECONDS
    )
    return Reply({"error": error})


@operation("browser_marks")
async def _marks(request: Request) -> Reply:
    executor = request.runtime.executor
    return Reply({"marks": await executor.in_thread(executor.browser.marks)})


@operation("hold_browser")
async def _hold(request: Request) -> Reply:
    """Take the browser over, or hand it back."""
    takeover = request.runtime.executor.takeover
    if request.fields.get("hold"):
        takeover.take()
    else:
        takeover.hand_back()
    return Reply({"held": takeover.is_held})
