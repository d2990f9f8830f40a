"""Retry policy of a webhook queue."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["MAX_PAUSE_SECONDS", "PROBE_SECONDS", "RetryPolicy"]

MAX_PAUSE_SECONDS = 120.0
"""The longest pause between two requests for a change, even if the receiver asks for more."""

PROBE_SECONDS = 10.0
"""A new change is tried within this time, whatever pause those before it are in."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is repeated, and when.

    Attributes:
        durable: Go on after the quick tries, with growing pauses.
        tries: Requests in quick succession.
        pause_seconds: Between two of these.
        backoff_seconds: The first of the growing pauses; each is four times the one before,
            up to `MAX_PAUSE_SECONDS`, and a fifth more or less by chance.
        give_up_seconds: Age at which a change becomes a dead letter.
    """

    durable: bool = False
    tries: int = 3
    pause_seconds: float = 1.0
    backoff_seconds: float = 5.0
    give_up_seconds: float = 5 * 86400.0

    def backoff(self, rounds: int) -> float:
        """Seconds to wait after so many rounds of quick tries."""
        grown: float = self.backoff_seconds * 4.0 ** min(rounds - 1, 20)
        return min(grown, MAX_PAUSE_SECONDS / 1.2) * random.uniform(0.8, 1.2)
