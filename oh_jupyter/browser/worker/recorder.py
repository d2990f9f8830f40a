"""What is recorded: what pages say and ask for, and what is done in them as a Playwright script."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from oh_jupyter.browser.channel.addresses import typed_address
from oh_jupyter.browser.channel.language import Call
from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

MAX_ENTRIES = 1000
"""Entries of each kind that are kept; the first ones say most."""
HEAD = """from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(headless=False)
    page = browser.new_page()
"""
_PLACE = re.compile(r"^\s+at (?:.*\()?(\S+?):(\d+):\d+\)?$", re.M)
"""The innermost line of a script in the stack of an error."""
QUIET_SECONDS = 0.5
"""What pages tell of an action arrives some time after it."""
NAVIGATIONS = {"goto": "goto({url!r})", "go_back": "go_back()", "go_forward": "go_forward()"}


class Recorder:
    """Records what is asked for, from when it is first asked for."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._statuses: WeakKeyDictionary[Request, int] = WeakKeyDictionary()

    def begin(self, names: list[str]) -> None:
        """Record from now on."""
        for name in names:
            if name in self._records:
                continue
            self._records[name] = []
            if name == "console_messages":
                self._context.on("console", self._said)
                self._context.on("weberror", self._failed)
            else:
                self._context.on("response", self._responded)
                self._context.on("requestfinished", self._answered)
                self._context.on("requestfailed", self._unanswered)

    def take(self, names: list[str]) -> dict[str, list[dict[str, Any]]]:
        """Hand over what was recorded since it was last handed over."""
        taken = {name: self._records[name] for name in names}
        self._records |= {name: [] for name in names}
        return taken

    def _note(self, name: str, entry: dict[str, Any]) -> None:
        if len(self._records[name]) < MAX_ENTRIES:
            self._records[name].append(entry)

    def _said(self, message: ConsoleMessage) -> None:
        where = message.location
        line, column = where.get("lineNumber", 0), where.get("columnNumber", 0)
        entry = {"type": message.type, "text": message.text, "url": where.get("url", "")}
        # What the browser itself says, as of a request that failed, is on no line.
        self._note("console_messages", {**entry, "line": line + 1 if line or column else 0})

    def _failed(self, error: WebError) -> None:
        page = error.page
        place = _PLACE.search(getattr(error.error, "stack", None) or "")
        url, line = (place[1], int(place[2])) if place else (page.url if page else "", 0)
        entry = {"type": "exception", "text": str(error.error), "url": url, "line": line}
        self._note("console_messages", entry)

    def _responded(self, response: Response) -> None:
        self._statuses[response.request] = response.status

    def _answered(self, request: Request) -> None:
        self._add_request(request, "")

    def _unanswered(self, request: Request) -> None:
        self._add_request(request, request.failure or "failed")

    def _add_request(self, request: Request, failure: str) -> None:
        entry = {
            "method": request.method,
            "url": request.url,
            "type": request.resource_type,
            "status": self._statuses.pop(request, None),
            "failure": failure,
            "duration": max(0.0, request.timing.get("responseEnd", -1)) / 1000,
        }
        self._note("network_requests", entry)


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
            arguments = dict(call.arguments)
            if "url" in arguments:
                arguments["url"] = typed_address(arguments["url"], os.curdir)
            self._lines.append("    page." + NAVIGATIONS[call.name].format(**arguments))

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
