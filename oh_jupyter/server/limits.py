"""How much of the server one client may take, so that the others and the Lab keep theirs."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from oh_jupyter.errors import LimitExceededError, TransferTooLargeError

BURST_SECONDS = 1.0
"""Seconds' worth of requests that may come at once."""

RETRY_AFTER_SECONDS = 2
"""When it is worth trying again where nothing says when actions end."""

MAX_INPUT_BYTES = 64 * 1024
"""Size of an action that is looked into, to see whether it is input for a command."""


def is_input(body: bytes | None) -> bool:
    """Whether an action, as JSON, is input for a command, which must not wait for its end."""
    if not body or len(body) > MAX_INPUT_BYTES or b"is_input" not in body:
        return False
    try:
        action = json.loads(body)["action"]
        return action["action"] == "run" and action["args"]["is_input"] is True
    except (ValueError, RecursionError, LookupError, TypeError):
        return False  # the kernel says what is wrong with it


class ConcurrencyLimit:
    """Limit of the actions that one kernel gets at once, with a bounded queue."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._waiting = 0
        self._slots = asyncio.Semaphore(max_running)

    @property
    def is_full(self) -> bool:
        """Whether another action would have to wait."""
        return self._slots.locked()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it; LimitExceededError if too many wait already."""
        if self.is_full and self._waiting >= self._max_waiting:
            raise LimitExceededError(
                f"The kernel has {self._max_running} actions under way and {self._waiting} that "
                "wait for them; the settings max_concurrent_actions and max_queued_actions allow "
                "no more. Try again later",
                RETRY_AFTER_SECONDS,
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()


class RateLimit:
    """Rate limit of each principal: the generic cell rate algorithm."""

    def __init__(
        self, per_second: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with a number of requests per second, None for any, and a clock in seconds."""
        self._interval_seconds = 1 / per_second if per_second else 0.0
        self._clock = clock
        # When a principal's requests so far would have been due at an even pace.
        self._due: dict[str, float] = {}

    def __len__(self) -> int:
        """How many principals are remembered."""
        return len(self._due)

    def take(self, principal: str) -> None:
        """Count a request; LimitExceededError if it comes too early, and is not counted."""
        if not self._interval_seconds:
            return
        now = self._clock()
        due = max(self._due.get(principal, now), now)
        early_seconds = due - now - BURST_SECONDS
        if early_seconds > 0:
            raise LimitExceededError(
                f"More than {1 / self._interval_seconds:g} requests per second, which the setting "
                "rate_limit allows. Try again later",
                math.ceil(early_seconds),
            )
        # Without this, everybody who ever asked would be remembered.
        if principal not in self._due:
            self._due = {name: then for name, then in self._due.items() if then > now}
        self._due[principal] = due + self._interval_seconds


@dataclass
class Limits:
    """The limits of a server: of bodies, of uploads, and of what a kernel is asked at once."""

    max_body_bytes: int = 64 * 1024**2
    max_upload_bytes: int = 1024**3
    max_concurrent_actions: int = 64
    max_queued_actions: int = 256
    rate: RateLimit = field(default_factory=lambda: RateLimit(None))

    def concurrency_limit(self) -> ConcurrencyLimit:
        """A new limit for one kernel."""
        return ConcurrencyLimit(self.max_concurrent_actions, self.max_queued_actions)

    def check_body(self, size_bytes: int) -> None:
        """Raise TransferTooLargeError for a body, announced or come so far, that is too large."""
        if size_bytes > self.max_body_bytes:
            raise TransferTooLargeError(
                f"The request is larger than {self.max_body_bytes / 1024**2:g} MiB; the setting "
                "max_body_mb allows no more. Send a large file to upload_file or store/"
            )
