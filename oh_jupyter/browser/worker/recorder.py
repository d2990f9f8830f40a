"""Recording of console messages, network requests, and actions as a Playwright script."""

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
"""Maximum entries of each kind; the first ones are the most useful."""
HEAD = """from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(headless=False)
    page = browser.new_page()
"""
_STACK_FRAME = re.compile(r"^\s+at (?:.*\()?(\S+?):(\d+):\d+\)?$", re.M)
"""Source position in a line of an error's stack; the first match is the innermost frame."""
QUIET_SECONDS = 0.5
"""Seconds without a recorder event after which all events of an action have arrived."""
NAVIGATIONS = {"goto": "goto({url!r})", "go_back": "go_back()", "go_forward": "go_forward()"}


class Recorder:
    """Recorder of console messages and network requests; each kind starts when first included."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._statuses: WeakKeyDictionary[Request, int] = WeakKeyDictionary()

    def begin(self, names: list[str]) -> None:
        """Start to record the named kinds of entries."""
        for name in names:
            if name in self._records:
                continue
            self._records[name] = []
            if name == "console_messages":
                self._context.on("console", self._message_logged)
                self._context.on("weberror", self._error_raised)
            else:
                self._context.on("response", self._responded)
                self._context.on("requestfinished", self._request_finished)
                self._context.on("requestfailed", self._request_failed)

    def take(self, names: list[str]) -> dict[str, list[dict[str, Any]]]:
        """Return and clear the entries recorded since the last call."""
        entries = {name: self._records[name] for name in names}
        self._records |= {name: [] for name in names}
        return entries

    def _note(self, name: str, entry: dict[str, Any]) -> None:
        if len(self._records[name]) < MAX_ENTRIES:
            self._records[name].append(entry)

    def _message_logged(self, message: ConsoleMessage) -> None:
        location = message.location
        line, column = location.get("lineNumber", 0), location.get("columnNumber", 0)
        entry = {"type": message.type, "text": message.text, "url": location.get("url", "")}
        # Messages of the browser itself, such as for a failed request, have no line.
        self._note("console_messages", {**entry, "line": line + 1 if line or column else 0})

    def _error_raised(self, error: WebError) -> None:
        page = error.page
        match = _STACK_FRAME.search(getattr(error.error, "stack", None) or "")
        url, line = (match[1], int(match[2])) if match else (page.url if page else "", 0)
        entry = {"type": "exception", "text": str(error.error), "url": url, "line": line}
        self._note("console_messages", entry)

    def _responded(self, response: Response) -> None:
        self._statuses[response.request] = response.status

    def _request_finished(self, request: Request) -> None:
        self._add_request(request, "")

    def _request_failed(self, request: Request) -> None:
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
    """Script recorder based on Playwright's own, like ``playwright codegen``."""

    def __init__(self, context: BrowserContext) -> None:
        self._recorder: Any = getattr(context, "_impl_obj", None)
        self._lines: list[str] | None = None
        self._arrived = asyncio.Event()

    async def start(self, url: str) -> None:
        """Start to record; the script starts with a navigation to ``url``."""
        if not hasattr(self._recorder, "_start_recording"):
            raise BrowserError("Recording needs a newer Playwright: pip install -U playwright")
        if self._lines is not None:
            raise BrowserError("The browser is already recording a script; stop that first.")
        await self._recorder._start_recording({"language": "python"}, self)
        self._lines = [] if url == "about:blank" else [f"    page.goto({url!r})"]

    async def read(self, stop: bool) -> str:
        """Return the script, and optionally stop recording."""
        if self._lines is None:
            raise BrowserError("The browser is not recording a script; start that first.")
        await self._wait_for_events()
        lines = [*self._lines, "    browser.close()", ""]
        if stop:
            self._lines = None
            await self._recorder._stop_recording()
        return HEAD + "\n".join(lines)

    async def note(self, call: Call) -> None:
        """Record a navigation, which Playwright's recorder does not report."""
        if self._lines is not None and call.name in NAVIGATIONS:
            await self._wait_for_events()
            arguments = dict(call.arguments)
            if "url" in arguments:
                arguments["url"] = typed_address(arguments["url"], os.curdir)
            self._lines.append("    page." + NAVIGATIONS[call.name].format(**arguments))

    async def _wait_for_events(self) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), QUIET_SECONDS)

    # Playwright's recorder calls these.

    def action_added(self, _page: Any, _data: Any, code: str) -> None:
        """Add the line of an action."""
        if self._lines is not None:
            self._lines.append(code)
        self._arrived.set()

    def action_updated(self, _page: Any, _data: Any, code: str) -> None:
        """Replace the line of the last action, such as for a text that grows while typing."""
        if self._lines:
            self._lines[-1] = code
        self._arrived.set()
