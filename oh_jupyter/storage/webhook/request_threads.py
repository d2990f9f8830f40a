"""Threads that make requests side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["RequestThreads"]


class RequestThreads:
    """Daemon threads, started as needed; one that hangs does not keep Python from ending."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0

    def submit(self, task: Callable[[], None]) -> None:
        """Do a task, which does not raise, in a thread that has nothing else to do."""
        self._busy += 1
        if self._busy > self._threads:
            thread = threading.Thread(
                target=_work, args=(self._tasks,), name="oh-webhook-request", daemon=True
            )
            thread.start()
            self._threads += 1
        self._tasks.put(task)

    def finished(self) -> None:
        """Note that a task is over, so that its thread can do the next."""
        self._busy -= 1

    def close(self) -> None:
        """End the threads when they have done what they were given."""
        for _ in range(self._threads):
            self._tasks.put(None)
        self._threads = 0


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
