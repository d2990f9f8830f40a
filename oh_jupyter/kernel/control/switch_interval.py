"""Shorter turns for a computing cell while somebody waits for an answer.

A thread that computes gives the interpreter away every ``sys.getswitchinterval()``, five
milliseconds by default, and answering an Action takes several turns of other threads, two of
them before our own code learns of it. While an answer is due, and for a while after it, since
agents seldom come with one Action only, turns are a tenth of a millisecond; then they are what
they were. Where no other thread wants to run, shorter turns cost nothing.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["LINGER", "Urgency"]

INTERVAL = 0.0001
"""Seconds that a computing thread keeps the interpreter while an answer is due."""

LINGER = 5.0
"""Seconds after an answer for which the next one counts as due."""


class Urgency:
    """Counts the answers that are due."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._due = 0
        self._usual = sys.getswitchinterval()

    def begin(self) -> None:
        """An answer is due from now on."""
        with self._lock:
            if self._due == 0:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(INTERVAL, self._usual))
            self._due += 1

    def end(self) -> None:
        """It was given, and no other came for a while."""
        with self._lock:
            self._due -= 1
            if self._due == 0:
                sys.setswitchinterval(self._usual)
