"""Limits per client and kernel, so that one client cannot starve the others."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from oh_jupyter.errors import LimitExceededError, TransferTooLargeError

BURST_SECONDS = 1.0  # burst allowance, in seconds of the allowed rate
RETRY_AFTER_SECONDS = 2  # suggested while the end of the running actions is unknown
MAX_INPUT_BYTES = 64 * 1024  # largest action that is inspected for input to a command


def is_input(body: bytes | None) -> bool:
    """Return whether an action, as JSON, is input for a command: it must not wait for its end."""
    if not body or len(body) > MAX_INPUT_BYTES or b"is_input" not in body:
        return False
    try:
        action = json.loads(body)["action"]
        return action["action"] == "run" and action["args"]["is_input"] is True
    except (ValueError, RecursionError, LookupError, TypeError):
        return False  # the kernel reports what is wrong


class ConcurrencyLimit:
    """Limit of simultaneous actions in one kernel, with a bounded queue."""

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
        """Wait for a slot and hold it; raise LimitExceededError if the queue is full."""
        if self.is_full and self._waiting >= self._max_waiting:
            raise LimitExceededError(
                f"The kernel has {self._max_running} running and {self._waiting} queued actions; "
                "the settings max_concurrent_actions and max_queued_actions allow no more. Try "
                "again later",
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
    """Rate limit of each principal, by the generic cell rate algorithm."""

    def __init__(
        self, per_second: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the allowed requests per second, None for any, and a clock in seconds."""
        self._interval_seconds = 1 / per_second if per_second else 0.0
        self._clock = clock
        # Time at which a principal's requests so far would be due at an even rate.
        self._due: dict[str, float] = {}

    def __len__(self) -> int:
        """Return the number of remembered principals."""
        return len(self._due)

    def take(self, principal: str) -> None:
        """Count a request, or raise LimitExceededError without counting it."""
        if not self._interval_seconds:
            return
        now = self._clock()
        due = max(self._due.get(principal, now), now)
        early_seconds = due - now - BURST_SECONDS
        if early_seconds > 0:
            raise LimitExceededError(
                f"More than the {1 / self._interval_seconds:g} requests per second that the "
                "setting rate_limit allows. Try again later",
                math.ceil(early_seconds),
            )
        # Forget principals whose requests are no longer limited.
        if principal not in self._due:
            self._due = {name: then for name, then in self._due.items() if then > now}
        self._due[principal] = due + self._interval_seconds


@dataclass
class RequestLimits:
    """Limits of a server: sizes of bodies and uploads, simultaneous actions, and rate."""

    max_body_bytes: int = 64 * 1024**2
    max_upload_bytes: int = 1024**3
    max_concurrent_actions: int = 64
    max_queued_actions: int = 256
    rate: RateLimit = field(default_factory=lambda: RateLimit(None))

    def concurrency_limit(self) -> ConcurrencyLimit:
        """Make the limit of one kernel."""
        return ConcurrencyLimit(self.max_concurrent_actions, self.max_queued_actions)

    def check_body(self, size_bytes: int) -> None:
        """Raise TransferTooLargeError if a body, announced or received so far, is too large."""
        if size_bytes > self.max_body_bytes:
            raise TransferTooLargeError(
                f"The request is larger than {self.max_body_bytes / 1024**2:g} MiB; the setting "
                "max_body_mb allows no more. Send a large file to upload_file or store/"
            )
