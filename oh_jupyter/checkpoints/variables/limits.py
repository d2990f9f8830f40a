"""Limits of the time and memory that keeping variables may take."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CALL_SECONDS = 0.3
"""Time limit of a call into an object's own code."""


class NotKeptError(Exception):
    """An object's content cannot be kept or restored; the message is the reason."""


@dataclass(frozen=True)
class Budget:
    """Maximum cost of keeping the variables of one cell.

    Attributes:
        size_bytes: Size of all copies.
        objects: Number of objects.
        seconds: Time for finding and reading them, without the time for copies of data.
    """

    size_bytes: float = 2**30
    objects: int = 1_000_000
    seconds: float = 0.5


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Keep Python's collector from running again and again while many objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def time_limit(seconds: float, action: str) -> Iterator[None]:
    """Raise NotKeptError in code that takes longer, even if it sleeps or loops.

    It works by a signal, hence on the main thread of POSIX systems only.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return
    is_over = False

    def expire(*_: Any) -> None:
        if not is_over:
            raise NotKeptError(f"{action} took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    start, (remaining, interval) = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if remaining:  # another owner's timer
            rest = max(remaining - (time.monotonic() - start), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, rest, interval)
