"""Outputs of a running cell, for a client that follows it."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from oh_jupyter.background import Watchers, wait_while

MAX_PENDING_CHARS = 64 * 1024**2
"""Maximum size of the outputs that the client has not fetched; later ones are omitted."""


class LiveOutputs:
    """Numbered outputs in the notebook format; those that the client has fetched are dropped."""

    def __init__(self) -> None:
        self._pending: list[tuple[dict[str, Any], int]] = []
        self._first = 0
        self._size = 0
        self._omitted = 0
        self._lock = threading.Lock()
        self._watchers: Watchers[[]] = Watchers()

    def add(self, output: dict[str, Any], size: int) -> None:
        """Add an output of a number of characters; on any thread."""
        with self._lock:
            if self._size + size > MAX_PENDING_CHARS:
                self._omitted += size
                return
            if self._omitted:
                self._pending.append((_notice(self._omitted), 0))
                self._omitted = 0
            self._pending.append((output, size))
            self._size += size
        self._watchers.tell()

    def after(self, seen: int, *, at_end: bool = False) -> dict[str, Any]:
        """Return the outputs that follow the first ``seen``, and drop those."""
        with self._lock:
            if at_end and self._omitted:
                self._pending.append((_notice(self._omitted), 0))
                self._omitted = 0
            known = max(0, seen - self._first)
            self._size -= sum(size for _, size in self._pending[:known])
            del self._pending[:known]
            self._first += known
            return {"first": self._first, "outputs": [output for output, _ in self._pending]}

    async def wait(self, seen: int, timeout_seconds: float) -> None:
        """Wait until there are more than ``seen`` outputs."""

        def is_old() -> bool:
            return self._first + len(self._pending) <= seen

        await wait_while(self._watchers.add, is_old, timeout_seconds)


def _notice(omitted: int) -> dict[str, Any]:
    text = f"\n[... {omitted} characters of output were omitted: the client reads too slowly ...]\n"
    return {"output_type": "stream", "name": "stderr", "text": text}


live_outputs: ContextVar[LiveOutputs | None] = ContextVar("live_outputs", default=None)
"""Gets the outputs of the current task's cells."""
