"""A timer that fires when nothing was done for some time."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["IdleTimer"]


class IdleTimer:
    """Calls back, from a thread of its own, some seconds after it was last touched."""

    def __init__(self, seconds: float | None, on_idle: Callable[[], None]) -> None:
        """Prepare; it runs from the first touch on, and never if there are no seconds."""
        self._seconds = seconds
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def touch(self) -> None:
        """Count the seconds anew."""
        with self._lock:
            self._cancel()
            if self._seconds and not self._is_closed:
                self._timer = threading.Timer(self._seconds, self._on_idle)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Stop for good."""
        with self._lock:
            self._is_closed = True
            self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
