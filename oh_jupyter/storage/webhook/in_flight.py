"""Requests in flight, sent by a pool of threads and completed in any order."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import IO

from oh_jupyter.background import try_start_thread
from oh_jupyter.storage.paths import parent
from oh_jupyter.storage.webhook.change_table import QueuedChange
from oh_jupyter.storage.webhook.outbox import Outbox

_MAX_REQUESTS = 8
_MAX_CONCURRENT_BYTES = 1 << 20
# A faster receiver gets one request at a time; more would only compete for the interpreter.
_SLOW_RESPONSE_SECONDS = 0.01


@dataclass(frozen=True)
class WebhookRequest:
    """Id and changes of one request; a retry has the same id."""

    id: str
    changes: Sequence[QueuedChange]
    contents: Sequence[bytes | IO[bytes]]


Send = Callable[[WebhookRequest], None]
"""Sends a request; raises if the receiver does not accept it."""


class SenderLockLostError(Exception):
    """Another process has taken over sending."""


class GoneError(Exception):
    """The changes of a request were dropped before it was sent."""


class PathBarrier:
    """Paths with a pending change, which blocks later changes of related paths."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys: set[str] = set()
        self._ancestors: set[str] = set()
        for key in keys:
            self.add(key)

    def add(self, key: str) -> None:
        """Block a path."""
        if key in self._keys:
            return
        self._keys.add(key)
        while key:
            key = parent(key)
            self._ancestors.add(key)

    def __contains__(self, key: str) -> bool:
        """Return whether the path itself, one above it or one below it is blocked."""
        return key in self._keys or self.blocks_around(key)

    def blocks_around(self, key: str) -> bool:
        """Return whether a path above or below this one is blocked."""
        if key in self._ancestors:
            return True
        while key:
            key = parent(key)
            if key in self._keys:
                return True
        return False


@dataclass(eq=False)
class Flight:
    """A request in flight, and the queue of later changes of the same path."""

    changes: list[QueuedChange]
    successors: deque[QueuedChange] = field(default_factory=deque)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.barrier = PathBarrier(change.key for change in self.changes)


class InFlightRequests:
    """Requests in flight; one thread submits them and processes their outcomes."""

    def __init__(self, send: Send, outbox: Outbox, on_completed: Callable[[], None]) -> None:
        self._send = send
        self._outbox = outbox
        self._on_completed = on_completed
        self._flights: list[Flight] = []
        self._tasks: SimpleQueue[Flight | None] = SimpleQueue()
        self._completed: SimpleQueue[Flight] = SimpleQueue()
        self._threads = 0
        self.numbers: set[int] = set()
        self.last_submitted = 0.0

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def has_completed(self) -> bool:
        """True if `next_completed` would return a request at once; thread-safe."""
        return not self._completed.empty()

    def start(self) -> None:
        """Start the request threads; without any, `submit` sends each request itself.

        From Python 3.12 on, no thread can be started at exit.
        """
        # Daemon threads: a hanging request does not block the exit of Python.
        while self._threads < _MAX_REQUESTS and try_start_thread(self._work, "oh-storage-request"):
            self._threads += 1

    def submit(self, changes: list[QueuedChange], successors: Iterable[QueuedChange] = ()) -> None:
        """Send a request, in a request thread if there is one."""
        flight = Flight(changes, deque(successors))
        self._flights.append(flight)
        self.numbers.update(change.number for change in (*changes, *flight.successors))
        self.last_submitted = time.time()
        if self._threads:
            self._tasks.put(flight)
        else:
            self._perform(flight)

    def follow(self, change: QueuedChange) -> bool:
        """Queue a change behind the request of its path, if nothing else blocks it."""
        before = [flight for flight in self._flights if change.key in flight.barrier]
        if len(before) > 1 or before[0].barrier.blocks_around(change.key):
            return False
        before[0].successors.append(change)
        self.numbers.add(change.number)
        return True

    def blocks(self, key: str) -> bool:
        """Return whether a request in flight blocks this path."""
        return any(key in flight.barrier for flight in self._flights)

    def wait_for_capacity(self, size: int) -> Flight | None:
        """Wait for capacity for a request of this size; return a request that completes first."""
        if not self._flights:
            return None
        size += sum(change.size for flight in self._flights for change in flight.changes)
        is_full = len(self._flights) >= _MAX_REQUESTS or size > _MAX_CONCURRENT_BYTES
        return self.next_completed(None if is_full else _SLOW_RESPONSE_SECONDS)

    def next_completed(self, timeout_seconds: float | None = 0) -> Flight | None:
        """Return the next completed request; None if there is none within the timeout."""
        try:
            flight = self._completed.get(timeout_seconds != 0, timeout_seconds)
        except Empty:
            return None
        self._flights.remove(flight)
        self.numbers.difference_update(change.number for change in flight.changes)
        self.numbers.difference_update(change.number for change in flight.successors)
        return flight

    def close(self) -> None:
        """Stop the threads after their queued requests."""
        for _ in range(self._threads):
            self._tasks.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (flight := self._tasks.get()) is not None:
            self._perform(flight)

    def _perform(self, flight: Flight) -> None:
        try:
            self._make(flight.changes)
        except Exception as error:
            flight.error = error
        except BaseException as error:  # keeps the thread alive, and completes the request
            flight.error = RuntimeError(type(error).__name__)
        self._completed.put(flight)
        self._on_completed()

    def _make(self, changes: list[QueuedChange]) -> None:
        with contextlib.ExitStack() as opened:
            payloads = [
                (change, opened.enter_context(self._outbox.payload(change.number)))
                for change in changes
            ]
            available = [(change, data) for change, data in payloads if data is not None]
            if not available:
                raise GoneError
            if not self._outbox.sender_lock.is_held():
                raise SenderLockLostError
            sent, contents = zip(*available, strict=True)
            self._send(WebhookRequest(changes[0].batch or changes[0].id, sent, contents))
