"""How an Action goes on: decided, queued, running; whoever looks is woken when that changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from oh_jupyter.events.action import Progress

__all__ = ["ActionProgress"]

MIN_QUEUED_SECONDS = 0.1
"""What is less is not worth a word."""


class ActionProgress(Progress):
    """The progress of one Action. It belongs to the runtime's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = time.monotonic()
        self._decided: float | None = None
        self._decided_by = ""
        self._queued: float | None = None
        self._begun: float | None = None
        self._lookers: set[asyncio.Event] = set()

    @property
    def is_queued(self) -> bool:
        """Whether others have the shell or the kernel."""
        return self._queued is not None and self._begun is None

    def decide(self, by: str) -> None:
        """Note that a person has decided, and by which door."""
        self._decided, self._decided_by = time.monotonic(), by

    def queue(self) -> None:
        """Note that it takes its place in the queue for the shell or the kernel."""
        self._queued = time.monotonic()
        self.put_out()

    def begin(self) -> None:
        """Note that it is its turn."""
        if self._begun is None:
            self._begun = time.monotonic()
            self.put_out()

    def put_out(self) -> None:
        """Wake whoever looks."""
        if self._lookers:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for looker in self._lookers:
            looker.set()

    async def wait_while(self, is_old: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait until there is something new."""
        looker = asyncio.Event()
        self._lookers.add(looker)
        try:
            async with asyncio.timeout(timeout_seconds):
                while is_old():
                    await looker.wait()
                    looker.clear()
        except TimeoutError:
            pass
        finally:
            self._lookers.discard(looker)

    def handling(self) -> dict[str, Any] | None:
        """What came before it began, as its Observation tells it; None if nothing."""
        found: dict[str, Any] = {}
        if self._decided is not None:
            found["waited_seconds"] = round(self._decided - self._received, 3)
            found["decided_by"] = self._decided_by
        if self._queued is not None:
            queued = (self._begun or time.monotonic()) - self._queued
            if queued >= MIN_QUEUED_SECONDS:
                found["queued_seconds"] = round(queued, 3)
        return found or None
