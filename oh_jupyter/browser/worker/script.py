"""What is done in the pages, as the lines of a Playwright script."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.language import Call
from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

__all__ = ["ScriptRecorder"]

HEAD = """from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(headless=False)
    page = browser.new_page()
"""
QUIET_SECONDS = 0.5
"""What pages tell of an action arrives some time after it."""
NAVIGATIONS = {"goto": "goto({url!r})", "go_back": "go_back()", "go_forward": "go_forward()"}


class ScriptRecorder:
    """Records with Playwright's own recorder, as ``playwright codegen`` does."""

    def __init__(self, context: BrowserContext) -> None:
        self._recorder: Any = getattr(context, "_impl_obj", None)
        self._lines: list[str] | None = None
        self._arrived = asyncio.Event()

    async def start(self, url: str) -> None:
        """Record from now on, beginning with the address that is open."""
        if not hasattr(self._recorder, "_start_recording"):
            raise BrowserError("Recording needs a newer Playwright: pip install -U playwright.")
        if self._lines is not None:
            raise BrowserError("The browser records already; stop that first.")
        await self._recorder._start_recording({"language": "python"}, self)
        self._lines = [] if url == "about:blank" else [f"    page.goto({url!r})"]

    async def read(self, stop: bool) -> str:
        """Return the script, and stop recording if it is so wished."""
        if self._lines is None:
            raise BrowserError("The browser does not record; start that first.")
        await self._all_told()
        lines = [*self._lines, "    browser.close()", ""]
        if stop:
            self._lines = None
            await self._recorder._stop_recording()
        return HEAD + "\n".join(lines)

    async def note(self, call: Call) -> None:
        """Record a call that goes elsewhere, of which the pages know nothing."""
        if self._lines is not None and call.name in NAVIGATIONS:
            await self._all_told()
            self._lines.append("    page." + NAVIGATIONS[call.name].format(**call.arguments))

    async def _all_told(self) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), QUIET_SECONDS)

    # Playwright's recorder calls these.

    def action_added(self, _page: Any, _data: Any, code: str) -> None:
        """Take in what was done."""
        if self._lines is not None:
            self._lines.append(code)
        self._arrived.set()

    def action_updated(self, _page: Any, _data: Any, code: str) -> None:
        """Take in that the last action went on, as a text grows while it is typed."""
        if self._lines:
            self._lines[-1] = code
        self._arrived.set()
