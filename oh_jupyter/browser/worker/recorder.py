"""Recording of console messages and network requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

MAX_ENTRIES = 1000
"""Maximum entries of each kind; the first ones are the most useful."""
_STACK_FRAME = re.compile(r"^\s+at (?:.*\()?(\S+?):(\d+):\d+\)?$", re.M)
"""Source position in a line of an error's stack; the first match is the innermost frame."""


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
