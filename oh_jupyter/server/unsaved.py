"""Unsaved text in open tabs, saved before agents read files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

DOCUMENTS_EVENT = "urn:oh-jupyter:documents:v1"

SAVE_TIMEOUT_SECONDS = 10.0  # a silent window is skipped until it reports again
_SCHEMA = {
    "$id": DOCUMENTS_EVENT,
    "version": "1",
    "title": "Documents that are open in tabs",
    "description": "Asks the tabs to save their text, because an agent will read it (save), and to "
    "check their files, because an agent may have changed them (changed). Reports that an agent "
    "will edit a document (edit), so that tabs know whose change follows.",
    "type": "object",
    "required": ["action"],
    "properties": {
        "action": {"enum": ["save", "edit", "changed"]},
        "request": {"type": "integer", "description": "Repeated in the report after a save."},
        "agent": {"type": "string", "description": "Name of the agent that edits, if known."},
    },
}


class _SaveRequest:
    """The windows that still have to save."""

    def __init__(self, windows: set[str]) -> None:
        self.windows = windows
        self.answered = asyncio.Event()

    def answer(self, window: str) -> None:
        self.windows.discard(window)
        if not self.windows:
            self.answered.set()


class UnsavedDocuments:
    """Documents with unsaved changes, by the window that has them open."""

    def __init__(
        self, event_logger: Any, save_shared: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Register the event that asks windows to save; ``save_shared`` saves shared documents."""
        self._event_logger = event_logger
        self._save_shared = save_shared
        self._windows: dict[str, frozenset[str]] = {}
        self._silent: set[str] = set()
        self._requests: dict[int, _SaveRequest] = {}
        self._ids = count(1)
        event_logger.register_event_schema(_SCHEMA)

    @property
    def paths(self) -> frozenset[str]:
        """Paths of the documents, relative to the server's root."""
        return frozenset().union(*self._windows.values())

    def report(self, window: str, paths: frozenset[str], answered: int | None = None) -> None:
        """Record the unsaved documents of a window, and the save request that it has answered."""
        self._silent.discard(window)
        if paths:
            self._windows[window] = paths
        else:
            self._windows.pop(window, None)
        # Other reports may arrive during a save.
        if answered in self._requests:
            self._requests[answered].answer(window)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Save before an agent works on files, and have the tabs check their files afterwards."""
        await self.save()
        try:
            yield
        finally:
            self.announce_changes()

    def announce_changes(self) -> None:
        """Have the tabs check their files, because an agent may have changed them."""
        self._event_logger.emit(schema_id=DOCUMENTS_EVENT, data={"action": "changed"})

    async def save(self) -> None:
        """Have all windows save, except for what they must ask the person about."""
        if windows := self._windows.keys() - self._silent:
            await self._ask_to_save(windows)
        if self._save_shared is not None:
            await self._save_shared()

    async def _ask_to_save(self, windows: set[str]) -> None:
        number = next(self._ids)
        request = self._requests[number] = _SaveRequest(windows)
        data = {"action": "save", "request": number}
        self._event_logger.emit(schema_id=DOCUMENTS_EVENT, data=data)
        try:
            async with asyncio.timeout(SAVE_TIMEOUT_SECONDS):
                await request.answered.wait()
        except TimeoutError:
            self._silent |= request.windows
        finally:
            del self._requests[number]
