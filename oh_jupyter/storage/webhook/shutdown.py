"""What is done with waiting changes when the process ends, and when it forks.

At exit they are sent, for a bounded time. SIGTERM ends Python without any exit handling;
where nobody else handles it, and changes are kept by this process only, they are sent
first. Changes in an outbox need none of that: they are on disk.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import weakref
from types import FrameType
from typing import Protocol

__all__ = ["close_at_exit"]

EXIT_SECONDS = 10.0
"""How long all that is not on disk may take together."""

DURABLE_SECONDS = 5.0
"""How long what is on disk may take; the next start sends the rest."""


class Queue(Protocol):
    """What has changes that wait."""

    durable: bool

    @property
    def survives(self) -> bool:
        """Whether what waits survives the process."""

    def close_at_exit(self, timeout_seconds: float) -> None:
        """Send what waits, for so many seconds at most."""

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""


_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


def close_at_exit(queue: Queue) -> None:
    """Take care of a queue until it is gone."""
    _queues.add(queue)
    if queue.durable or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _deliver() -> None:
    started = time.monotonic()
    # What would be lost comes first.
    for queue in sorted(_queues, key=lambda queue: queue.survives):
        limit = DURABLE_SECONDS if queue.survives else EXIT_SECONDS
        queue.close_at_exit(max(started + limit - time.monotonic(), 0))


def _terminate(number: int, frame: FrameType | None) -> None:
    try:
        _deliver()
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _reset_after_fork() -> None:
    # The parent delivers what was waiting; the threads and their locks stayed there.
    for queue in list(_queues):
        queue.reset_after_fork()


atexit.register(_deliver)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
