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

__all__ = ["Limits", "RateLimit", "Turns", "is_input"]

BURST = 1.0
"""Seconds' worth of requests that may come at once."""

RETRY = 2
"""Seconds after which it is worth trying again where nothing says when actions end."""


LONGEST_INPUT = 64 * 1024
"""Bytes of an action that is looked into, to see whether it is input for a command."""


def is_input(body: bytes | None) -> bool:
    """Whether an action is input for the command that runs, such as C-c.

    It must not wait until that command has ended.

    Args:
        body: ``{"action": {...}}`` as JSON, perhaps.

    Returns:
        Whether it is.
    """
    if not body or len(body) > LONGEST_INPUT or b"is_input" not in body:
        return False
    try:
        action = json.loads(body)["action"]
        return action["action"] == "run" and action["args"]["is_input"] is True
    except (ValueError, RecursionError, LookupError, TypeError):
        return False  # the kernel says what is wrong with it


class Turns:
    """The actions that one kernel gets at once; as many others wait for their turn."""

    def __init__(self, running: int, waiting: int) -> None:
        """Begin with none.

        Args:
            running: Actions that the kernel may have at once.
            waiting: Actions that may wait until it has fewer.
        """
        self._running = running
        self._most_waiting = waiting
        self._waiting = 0
        self._free = asyncio.Semaphore(running)

    @property
    def all_taken(self) -> bool:
        """Whether another action would have to wait."""
        return self._free.locked()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and keep it while the context is open.

        Raises:
            LimitExceededError: Too many wait already.
        """
        if self._free.locked() and self._waiting >= self._most_waiting:
            raise LimitExceededError(
                f"The kernel has {self._running} actions under way and {self._waiting} that wait "
                "for them; the settings max_concurrent_actions and max_queued_actions allow no "
                "more. Try again later",
                RETRY,
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()


class RateLimit:
    """How often each asker may ask (the generic cell rate algorithm)."""

    def __init__(
        self, per_second: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with nobody having asked.

        Args:
            per_second: Requests per second; None for any number.
            clock: Tells the time in seconds.
        """
        self._interval = 1 / per_second if per_second else 0.0
        self._clock = clock
        # When an asker's requests so far would have been due at an even pace.
        self._due: dict[str, float] = {}

    def __len__(self) -> int:
        """How many askers are remembered."""
        return len(self._due)

    def take(self, asker: str) -> None:
        """Count a request.

        Args:
            asker: Who asks.

        Raises:
            LimitExceededError: It comes too early, and is not counted.
        """
        if not self._interval:
            return
        now = self._clock()
        due = max(self._due.get(asker, now), now)
        early = due - now - BURST
        if early > 0:
            raise LimitExceededError(
                f"More than {1 / self._interval:g} requests per second, which the setting "
                "rate_limit allows. Try again later",
                math.ceil(early),
            )
        # Without this, everybody who ever asked would be remembered.
        if asker not in self._due:
            self._due = {name: then for name, then in self._due.items() if then > now}
        self._due[asker] = due + self._interval


@dataclass
class Limits:
    """The limits of a server.

    Attributes:
        max_body: Bytes that a request may have that is read as a whole.
        max_concurrent_actions: Actions that a kernel gets at once.
        max_queued_actions: Actions that may wait for each kernel besides.
        rate: How often each asker may ask.
    """

    max_body: int = 64 * 1024**2
    max_concurrent_actions: int = 64
    max_queued_actions: int = 256
    rate: RateLimit = field(default_factory=lambda: RateLimit(None))

    def turns(self) -> Turns:
        """The turns of one kernel.

        Returns:
            New ones.
        """
        return Turns(self.max_concurrent_actions, self.max_queued_actions)

    def check_body(self, size: int) -> None:
        """See whether a body may be that large.

        Args:
            size: Its bytes, announced or come so far.

        Raises:
            TransferTooLargeError: It may not.
        """
        if size > self.max_body:
            raise TransferTooLargeError(
                f"The request is larger than {self.max_body / 1024**2:g} MiB; the setting "
                "max_body_mb allows no more. Send a large file to upload_file or store/"
            )
