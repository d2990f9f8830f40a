"""Python's switch interval, which is short while a reply is due.

Otherwise each step of a reply could wait 5 ms for a thread that computes.
"""

from __future__ import annotations

import sys
import threading

SHORT_INTERVAL_SECONDS = 0.0001

RESTORE_DELAY_SECONDS = 5.0
"""How long a reply keeps the interval short: agents seldom send a single Action."""


class ShortSwitchInterval:
    """Reference count of pending replies; the interval is short while there are any."""

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


short_switch_interval = ShortSwitchInterval()
"""The count of this process, which has one switch interval."""
