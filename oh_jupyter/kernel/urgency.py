"""Shorter turns for a computing cell while somebody waits for an answer.

A thread that computes gives the interpreter away every ``sys.getswitchinterval()``, five
milliseconds by default, and answering an Action takes several turns of other threads. While
an answer is due, turns are half a millisecond; afterwards they are what they were. Where
no other thread wants to run, shorter turns cost nothing.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["Urgency"]

INTERVAL = 0.0005
"""Seconds that a computing thread keeps the interpreter while an answer is due."""


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
        """It was given."""
        with self._lock:
            self._due -= 1
            if self._due == 0:
                sys.setswitchinterval(self._usual)
