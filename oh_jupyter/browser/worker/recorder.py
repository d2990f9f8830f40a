"""What pages say and ask for: console messages, uncaught errors and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

__all__ = ["Recorder"]

MAX_ENTRIES = 1000
"""Entries of each kind that are kept; the first ones say most."""


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
        entry = {"type": message.type, "text": message.text, "url": where.get("url", "")}
        self._note("console_messages", {**entry, "line": where.get("lineNumber", 0) + 1})

    def _failed(self, error: WebError) -> None:
        page = error.page
        entry = {"type": "exception", "text": str(error.error), "url": page.url if page else ""}
        self._note("console_messages", {**entry, "line": 0})

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
