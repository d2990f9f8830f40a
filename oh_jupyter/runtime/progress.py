"""Progress of Actions: decided, queued, running; subscribers are woken by changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from oh_jupyter.background import Watchers, wait_while
from oh_jupyter.events import Action
from oh_jupyter.events.action import Progress

MIN_QUEUED_SECONDS = 0.1
"""Shortest queueing time that is reported."""


MAX_LIVE_LINES = 20
"""Maximum number of output lines in a progress report."""


class ActionProgress(Progress):
    """Progress of the Action that the current task executes on the runtime's loop."""

    def __init__(self, action: Action, cwd: str = "") -> None:
        self.action = action
        self.cwd = cwd
        self.task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._received = time.monotonic()
        self._decided: float | None = None
        self._decided_by = ""
        self.is_withdrawn = False
        self.is_followed = False
        self._is_started = False
        self._queued: float | None = None
        self.began: float | None = None
        self._watchers: Watchers[[]] = Watchers()
        self.on_prepare: Callable[[], Awaitable[None]] | None = None
        """Called once the Action no longer waits for the shell."""

    async def prepare(self) -> None:
        """Prepare the start."""
        if self.on_prepare is not None:
            await self.on_prepare()

    @property
    def has_begun(self) -> bool:
        """Whether the Action may have had an effect."""
        return self._is_started and not self.is_queued

    @property
    def is_queued(self) -> bool:
        """Whether the Action waits for the shell or the kernel."""
        return self._queued is not None and self.began is None

    def decide(self, by: str) -> None:
        """Record when and where a person decided."""
        self._decided, self._decided_by = time.monotonic(), by

    def withdraw(self) -> None:
        """Record that nobody waits for the Action any more, before a person decided."""
        self.is_withdrawn = True

    def start(self) -> None:
        """Record that decision and checkpoint are done."""
        self._is_started = True

    def follow(self) -> None:
        """Record that a frontend shows the output so far."""
        if not self.is_followed:
            self.is_followed = True
            self.put_out()

    def queue(self) -> None:
        """Record that the Action waits for the shell or the kernel."""
        self._queued = time.monotonic()
        self.put_out()

    def begin(self) -> None:
        """Record that the Action runs."""
        if self.began is None:
            self.began = time.monotonic()
            self.put_out()

    def put_out(self) -> None:
        """Wake the subscribers."""
        self._watchers.tell()

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Subscribe on the thread that makes the changes; returns the unsubscriber."""
        return self._watchers.add(wake)

    def handling(self) -> dict[str, Any]:
        """Return what happened before the start, for the Observation."""
        handling: dict[str, Any] = {}
        if self._decided is not None:
            handling["waited_seconds"] = round(self._decided - self._received, 3)
            handling["decided_by"] = self._decided_by
        if self.is_withdrawn:
            handling["withdrawn"] = True
        if self._queued is not None:
            queued = (self.began or time.monotonic()) - self._queued
            if queued >= MIN_QUEUED_SECONDS:
                handling["queued_seconds"] = round(queued, 3)
        return handling


class RunningActions(dict[int, ActionProgress]):
    """The Actions in progress, by id; owned by the runtime's loop."""

    def __init__(self, is_waiting: Callable[[int], bool], peek: Callable[[str, int], str]) -> None:
        """Start empty; ``peek`` returns the last output lines of Actions of a type."""
        super().__init__()
        self._is_waiting = is_waiting
        self._peek = peek
        self._on_begin: Watchers[[]] = Watchers()

    def begin(self, state: ActionProgress) -> None:
        """Record that the current task executes an Action."""
        self[cast(int, state.action.id)] = state
        self._on_begin.tell()

    def on_begin(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Subscribe to the start of Actions, on the runtime's loop; returns the unsubscriber."""
        return self._on_begin.add(wake)

    async def look(
        self, id: int | None, seen: dict[str, str] | None, timeout_seconds: float
    ) -> dict[str, str]:
        """Return an Action's state and last lines, once they differ from ``seen``."""
        if id is None:
            return {"state": "ended", "text": ""}
        if (state := self.get(id)) is not None:
            await wait_while(state.on_change, lambda: self._look(id) == seen, timeout_seconds)
        return self._look(id)

    def _look(self, id: int) -> dict[str, str]:
        if self._is_waiting(id):
            return {"state": "waiting", "text": ""}
        if id not in self:
            return {"state": "ended", "text": ""}
        if self[id].is_queued:
            return {"state": "queued", "text": ""}
        text = self._peek(self[id].action.kind, MAX_LIVE_LINES)
        return {"state": "running", "text": text}
