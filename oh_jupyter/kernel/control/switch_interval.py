"""A shorter interpreter switch interval while somebody waits for a reply.

A thread that computes gives the interpreter away every ``sys.getswitchinterval()``, five
milliseconds by default, and answering an Action takes several turns of other threads, two of
them before our own code learns of it. Where no other thread wants to run, a shorter interval
costs nothing.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["RESTORE_DELAY_SECONDS", "ShortSwitchInterval"]

SHORT_INTERVAL_SECONDS = 0.0001

RESTORE_DELAY_SECONDS = 5.0
"""How long a reply keeps the interval short: agents seldom come with one Action only."""


class ShortSwitchInterval:
    """Reference count of the replies that are due; the interval is short while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due = 0
        self._usual_seconds = sys.getswitchinterval()

    def acquire(self) -> None:
        """Count one more, from any thread."""
        with self._lock:
            if self._due == 0:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(SHORT_INTERVAL_SECONDS, self._usual_seconds))
            self._due += 1

    def release(self) -> None:
        """Count one less; the last one restores the interval."""
        with self._lock:
            self._due -= 1
            if self._due == 0:
                sys.setswitchinterval(self._usual_seconds)
