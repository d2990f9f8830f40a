"""How Actions go on: decided, queued, running; whoever looks is woken when that changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from oh_jupyter.background import Watchers, wait_while
from oh_jupyter.events import Action, CmdRunAction
from oh_jupyter.events.action import Progress

MIN_QUEUED_SECONDS = 0.1
"""What is less is not worth a word."""


MAX_LIVE_LINES = 20
"""Lines of the output so far that are told."""


class ActionProgress(Progress):
    """The progress of one Action, which the current task carries out on the runtime's loop."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._received = time.monotonic()
        self._decided: float | None = None
        self._decided_by = ""
        self._is_started = False
        self._queued: float | None = None
        self.began: float | None = None
        self._watchers: Watchers[[]] = Watchers()

    @property
    def has_begun(self) -> bool:
        """Whether it may have had an effect."""
        return self._is_started and not self.is_queued

    @property
    def is_queued(self) -> bool:
        """Whether others have the shell or the kernel."""
        return self._queued is not None and self.began is None

    def decide(self, by: str) -> None:
        """Note that a person has decided, and by which door."""
        self._decided, self._decided_by = time.monotonic(), by

    def start(self) -> None:
        """Note that no decision and no checkpoint stands in its way any more."""
        self._is_started = True

    def queue(self) -> None:
        """Note that it takes its place in the queue for the shell or the kernel."""
        self._queued = time.monotonic()
        self.put_out()

    def begin(self) -> None:
        """Note that it is its turn."""
        if self.began is None:
            self.began = time.monotonic()
            self.put_out()

    def put_out(self) -> None:
        """Wake whoever looks."""
        self._watchers.tell()

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Subscribe to changes, told on the thread that made them; what is returned ends that."""
        return self._watchers.add(wake)

    def handling(self) -> dict[str, Any] | None:
        """What came before it began, as its Observation tells it; None if nothing."""
        found: dict[str, Any] = {}
        if self._decided is not None:
            found["waited_seconds"] = round(self._decided - self._received, 3)
            found["decided_by"] = self._decided_by
        if self._queued is not None:
            queued = (self.began or time.monotonic()) - self._queued
            if queued >= MIN_QUEUED_SECONDS:
                found["queued_seconds"] = round(queued, 3)
        return found or None


class RunningActions(dict[int, ActionProgress]):
    """The Actions that are carried out, by id; they belong to the runtime's loop."""

    def __init__(self, is_waiting: Callable[[int], bool], peek: Callable[[str, int], str]) -> None:
        """Begin with none; ``peek`` gives the last lines that Actions of a type have put out."""
        super().__init__()
        self._is_waiting = is_waiting
        self._peek = peek

    def begin(self, action: Action) -> ActionProgress:
        """Note that the current task carries an Action out."""
        found = self[cast(int, action.id)] = ActionProgress(action)
        return found

    def began_after(self, moment: float) -> bool:
        """Whether a command began in the shell after a moment on the monotonic clock."""
        commands = (entry for entry in self.values() if entry.action.kind == CmdRunAction.kind)
        return any(entry.began is not None and entry.began > moment for entry in commands)

    async def look(
        self, id: int | None, seen: dict[str, str] | None, timeout_seconds: float
    ) -> dict[str, str]:
        """State and last lines of an Action's ``text``, once they are not what was ``seen``."""
        if id is None:
            return {"state": "ended", "text": ""}
        if (going_on := self.get(id)) is not None:
            await wait_while(going_on.on_change, lambda: self._look(id) == seen, timeout_seconds)
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
