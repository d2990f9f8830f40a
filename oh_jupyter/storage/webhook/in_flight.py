"""Requests on their way: made in threads of their own, and answered in any order."""

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
_MAX_BYTES_SIDE_BY_SIDE = 1 << 20
# A receiver that answers sooner gets one request at a time: more would only compete for us.
_SLOW_ANSWER_SECONDS = 0.01


@dataclass(frozen=True)
class WebhookRequest:
    """What one request is made of, under the same id for each try."""

    id: str
    changes: Sequence[QueuedChange]
    contents: Sequence[bytes | IO[bytes]]


Send = Callable[[WebhookRequest], None]
"""Makes a request; raises if it was not accepted."""


class NotOursError(Exception):
    """Another process sends now."""


class GoneError(Exception):
    """The changes of a request were dropped before it was made."""


class PathBarrier:
    """Paths of which a change waits, so that later ones have to wait as well."""

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
        """Whether the path itself, one above or one below it is blocked."""
        return key in self._keys or self.blocks_around(key)

    def blocks_around(self, key: str) -> bool:
        """Whether a path above or below it is blocked, itself aside."""
        if key in self._ancestors:
            return True
        while key:
            key = parent(key)
            if key in self._keys:
                return True
        return False


@dataclass(eq=False)
class Flight:
    """A request on its way, and the changes of the same path that follow it, in order."""

    changes: list[QueuedChange]
    successors: deque[QueuedChange] = field(default_factory=deque)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.barrier = PathBarrier(change.key for change in self.changes)


class InFlightRequests:
    """Requests on their way, for one thread that begins them and takes their answers."""

    def __init__(self, send: Send, outbox: Outbox, on_answer: Callable[[], None]) -> None:
        self._send = send
        self._outbox = outbox
        self._on_answer = on_answer
        self._flights: list[Flight] = []
        self._tasks: SimpleQueue[Flight | None] = SimpleQueue()
        self._answered: SimpleQueue[Flight] = SimpleQueue()
        self._threads = 0
        self.numbers: set[int] = set()
        self.last_begun = 0.0

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def has_answers(self) -> bool:
        """Whether requests are over that `answer` has not given; for any thread."""
        return not self._answered.empty()

    def start(self) -> None:
        """Start the threads that make requests: from Python 3.12 on none starts at exit.

        Where none can be started, `begin` makes each request itself.
        """
        # Daemons: one that hangs does not keep Python from ending.
        while self._threads < _MAX_REQUESTS and try_start_thread(self._work, "oh-webhook-request"):
            self._threads += 1

    def begin(self, changes: list[QueuedChange], successors: Iterable[QueuedChange] = ()) -> None:
        """Make a request, in another thread if there is one."""
        flight = Flight(changes, deque(successors))
        self._flights.append(flight)
        self.numbers.update(change.number for change in (*changes, *flight.successors))
        self.last_begun = time.time()
        if self._threads:
            self._tasks.put(flight)
        else:
            self._perform(flight)

    def follow(self, change: QueuedChange) -> bool:
        """Let a change be sent right after the one of its path, if that is all it waits for."""
        before = [flight for flight in self._flights if change.key in flight.barrier]
        if len(before) > 1 or before[0].barrier.blocks_around(change.key):
            return False
        before[0].successors.append(change)
        self.numbers.add(change.number)
        return True

    def blocks(self, key: str) -> bool:
        """Whether a change of this path has to wait for an answer."""
        return any(key in flight.barrier for flight in self._flights)

    def answer_before(self, size: int) -> Flight | None:
        """Wait until one more request of so many bytes may be made, or for an answer."""
        if not self._flights:
            return None
        size += sum(change.size for flight in self._flights for change in flight.changes)
        is_full = len(self._flights) >= _MAX_REQUESTS or size > _MAX_BYTES_SIDE_BY_SIDE
        return self.answer(None if is_full else _SLOW_ANSWER_SECONDS)

    def answer(self, timeout_seconds: float | None = 0) -> Flight | None:
        """Take the next request that is over; None if there is none within this time."""
        try:
            flight = self._answered.get(timeout_seconds != 0, timeout_seconds)
        except Empty:
            return None
        self._flights.remove(flight)
        self.numbers.difference_update(change.number for change in flight.changes)
        self.numbers.difference_update(change.number for change in flight.successors)
        return flight

    def close(self) -> None:
        """End the threads when they have done what they were given."""
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
        except BaseException as error:  # the thread must live, and the request be over
            flight.error = RuntimeError(type(error).__name__)
        self._answered.put(flight)
        self._on_answer()

    def _make(self, changes: list[QueuedChange]) -> None:
        with contextlib.ExitStack() as opened:
            found = [
                (change, opened.enter_context(self._outbox.payload(change.number)))
                for change in changes
            ]
            there = [(change, data) for change, data in found if data is not None]
            if not there:
                raise GoneError
            if not self._outbox.sender_lock.is_held():
                raise NotOursError
            sent, contents = zip(*there, strict=True)
            self._send(WebhookRequest(changes[0].batch or changes[0].id, sent, contents))
