"""How patient to be with a receiver."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["MAX_PAUSE_SECONDS", "RetryPolicy"]

MAX_PAUSE_SECONDS = 3600.0
"""Seconds after which a receiver is asked again in any case."""


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a queue is.

    Attributes:
        durable: Go on after the quick tries, with growing pauses.
        tries: How often a request is made in quick succession.
        pause: Seconds between two of these.
        backoff: Seconds of the first of the growing pauses; each is four times the one
            before, an hour at most, and a fifth more or less by chance.
        give_up: Seconds after which a change is put aside.
    """

    durable: bool = False
    tries: int = 3
    pause: float = 1.0
    backoff: float = 5.0
    give_up: float = 5 * 86400.0

    def after(self, rounds: int) -> float:
        """Seconds to wait after so many rounds of tries."""
        pause: float = min(self.backoff * 4.0 ** min(rounds - 1, 20), MAX_PAUSE_SECONDS)
        return pause * random.uniform(0.8, 1.2)
