"""Dispatcher of pending changes: oldest first, independent paths concurrently.

A change waits for earlier ones of the same path and of those above and below it, so none overtakes.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from oh_jupyter.storage.webhook.change_table import QueuedChange
from oh_jupyter.storage.webhook.changes import DeliveryCounter, FailedDelivery, RefusedError
from oh_jupyter.storage.webhook.in_flight import (
    Flight,
    GoneError,
    InFlightRequests,
    PathBarrier,
    Send,
    SenderLockLostError,
)
from oh_jupyter.storage.webhook.outbox import Outbox

MAX_PAUSE_SECONDS = 120.0
"""Longest pause between two attempts, even if the receiver asks for a longer one."""

PROBE_SECONDS = 10.0
"""Longest time until a new change is tried, even while earlier ones pause."""

_log = logging.getLogger(__name__)
_UNAPPLIED_SECONDS = 1.0
_REST_SECONDS_PER_CHANGE = 0.0001
_MAX_ACCEPTED = 64
_ACCEPT_SECONDS = 0.2


@dataclass(frozen=True)
class RetryPolicy:
    """Retry policy of a webhook queue.

    After a round of quick tries, a durable queue pauses before the next round. Pauses grow
    fourfold up to `MAX_PAUSE_SECONDS`, with a jitter of a fifth.
    """

    durable: bool = False
    tries: int = 3
    pause_seconds: float = 1.0
    backoff_seconds: float = 5.0
    give_up_seconds: float = 5 * 86400.0  # at that age it becomes a dead letter

    def backoff(self, rounds: int) -> float:
        """Return the pause after a number of failed rounds."""
        pause: float = self.backoff_seconds * 4.0 ** min(rounds - 1, 20)
        return min(pause, MAX_PAUSE_SECONDS / 1.2) * random.uniform(0.8, 1.2)


class Dispatcher:
    """Sends pending changes and records their outcomes; not thread-safe unless stated."""

    def __init__(
        self,
        send: Send,
        outbox: Outbox,
        retry_policy: RetryPolicy,
        batch_bytes: int,
        on_completed: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._in_flight = InFlightRequests(send, outbox, on_completed)
        self._retry_policy = retry_policy
        self._batch_bytes = batch_bytes  # size of a full batch; 0 for one change per request
        self._barrier = PathBarrier()  # postponed paths
        self._accepted: list[QueuedChange] = []
        self._accepted_at = 0.0
        self._accepting = threading.Lock()
        self._done: set[int] = set()  # pending changes that the store has applied
        self._dispatch_on_completion = False
        self._outages = 0  # consecutive rounds without a response
        self._server_asked_delay = False  # whether the receiver sent Retry-After
        self._retry_now = False
        self._outage_logged = self._drop_logged = False
        self._postponed_from = math.inf
        self.counter = DeliveryCounter()
        self.next_dispatch = math.inf  # times are seconds since the epoch
        self.open_from = math.inf  # number of the first change with quick tries left
        self.not_before = 0.0  # end of the receiver's pause
        self.rest_until = 0.0  # earliest time of a pass for new changes
        self._interrupt = threading.Event()

    # Methods for any thread:

    def retry_now(self) -> None:
        """Skip the growing pauses in the next pass."""
        self._retry_now = True

    def interrupt(self) -> None:
        """Submit no requests until `resume`."""
        self._interrupt.set()

    def resume(self) -> None:
        """Submit requests again."""
        self._interrupt.clear()

    @property
    def has_completed(self) -> bool:
        """True if completed requests are waiting for `process_completed`."""
        return self._in_flight.has_completed

    @property
    def is_sending(self) -> bool:
        """True while requests are in flight."""
        return bool(self._in_flight)

    def write_accepted(self) -> None:
        """Remove accepted changes from the outbox, several in one transaction."""
        with self._accepting:
            self._accepted_at = time.monotonic()
            if self._accepted:
                self._outbox.accept(self._accepted)
                self._accepted = []

    def count_pending(self) -> int:
        """Return the number of changes that the receiver has not accepted."""
        with self._accepting:
            accepted = {change.number for change in self._accepted}
            if not accepted:
                return self._outbox.totals()[0]
            return sum(change.number not in accepted for change in self._outbox.pending())

    def fresh_not_before(self) -> float:
        """Return the earliest time to send a new change."""
        earliest = self.not_before
        if not self._server_asked_delay:
            earliest = min(earliest, self._in_flight.last_submitted + PROBE_SECONDS)
        return max(earliest, self.rest_until)

    # Methods for the queue's thread:

    def start(self) -> None:
        """Start the request threads."""
        self._in_flight.start()

    def dispatch(self, fresh: Sequence[int]) -> None:
        """Send all pending changes that are due; ``fresh`` are new since the last pass."""
        import sqlite3

        self._done.update(fresh)
        try:
            with contextlib.suppress(sqlite3.Error):  # sending continues with a full disk
                self._outbox.mark_done(fresh)
            self._outbox.sender_lock.acquire()
            try:
                self._settle_completed()
                self._dispatch(set(fresh))
            finally:
                self._finish()
        except (sqlite3.Error, OSError) as error:
            self._report_broken(error)

    def process_completed(self) -> None:
        """Process completed requests, and send their successors."""
        import sqlite3

        try:
            self._settle_completed()
            self._finish()
        except (sqlite3.Error, OSError) as error:
            self._report_broken(error)

    def close(self) -> None:
        """Stop the request threads."""
        self._in_flight.close()

    def _report_broken(self, error: Exception) -> None:
        _log.warning("The outbox is not usable at the moment, retrying later: %s", error)
        self._postponed_from = math.inf
        self.next_dispatch = time.time() + self._retry_policy.backoff_seconds

    def _finish(self) -> None:
        self.open_from = min(self._postponed_from, *self._in_flight.numbers, math.inf)
        if not self._in_flight or time.monotonic() > self._accepted_at + _ACCEPT_SECONDS:
            self.write_accepted()
        if not self._in_flight:
            self._outbox.sender_lock.release()
            self._outbox.maintain()

    def _dispatch(self, fresh: set[int]) -> None:
        retry_now, self._retry_now = self._retry_now, False
        if self.not_before <= time.time():
            self._server_asked_delay = False
        if retry_now and not self._server_asked_delay:
            self.not_before = 0.0
        elif fresh:
            self.not_before = min(self.not_before, self.fresh_not_before())
        accepted = {change.number for change in self._accepted}
        pending = [c for c in self._outbox.pending() if c.number not in accepted]
        for change in pending:
            change.done = change.done or change.number in self._done
        self._done.intersection_update(change.number for change in pending)
        self._expedite(pending, fresh)
        self._barrier = PathBarrier()
        self.next_dispatch = self._postponed_from = math.inf
        self._dispatch_on_completion = False
        postponed = 0
        waiting = [change for change in pending if change.number not in self._in_flight.numbers]
        for request in self._requests_to_make(waiting):
            if not self._submit_or_postpone(request, retry_now):
                postponed += len(request)
                self._block(request)
        # A pass over many postponed changes takes time, so not every new change starts one.
        self.rest_until = time.time() + _REST_SECONDS_PER_CHANGE * postponed

    def _expedite(self, pending: Sequence[QueuedChange], fresh: set[int]) -> None:
        """Shorten the growing pause of paths that have a new change."""
        keys = {change.key for change in pending if change.number in fresh}
        soon = time.time() + PROBE_SECONDS
        batches = {c.batch for c in pending if c.key in keys and c.batch}
        paused = [
            c
            for c in pending
            if c.rounds and c.due > soon and (c.key in keys or c.batch in batches)
        ]
        if paused and not self._server_asked_delay:
            for change in paused:
                change.due = soon
            self._outbox.reschedule(paused)

    def _block(self, changes: Iterable[QueuedChange]) -> None:
        for change in changes:
            self._barrier.add(change.key)

    def _submit_or_postpone(self, request: list[QueuedChange], retry_now: bool) -> bool:
        """Submit a request or leave it pending; return whether it was submitted."""
        if not all(change.done for change in request):
            self.next_dispatch = min(self.next_dispatch, time.time() + _UNAPPLIED_SECONDS)
            return False
        if any(change.key in self._barrier for change in request):
            return False
        if any(self._in_flight.blocks(change.key) for change in request):
            if not self._batch_bytes and self._in_flight.follow(request[0]):
                return True
            self._dispatch_on_completion = True
            self._postponed_from = min(self._postponed_from, request[0].number)
            return False
        due = max(change.due for change in request)
        if retry_now and all(change.tries == 0 for change in request):
            due = 0.0
        if due <= time.time() and self.not_before <= time.time():
            self._wait_for_capacity(sum(change.size for change in request))
        if max(due, self.not_before) > time.time():
            self.next_dispatch = min(self.next_dispatch, max(self.not_before, due))
            if not self._retry_policy.durable or any(change.tries for change in request):
                self._postponed_from = min(self._postponed_from, request[0].number)
        elif self._interrupt.is_set():
            self._postponed_from = min(self._postponed_from, request[0].number)
        elif any(change.key in self._barrier for change in request):
            pass  # a path above or below it was postponed in the meantime
        else:
            self._submit(request)
            return True
        return False

    def _requests_to_make(self, waiting: Sequence[QueuedChange]) -> Iterator[list[QueuedChange]]:
        """Iterate over the changes of each request to make, oldest first."""
        if not self._batch_bytes:
            yield from ([change] for change in self._newest(waiting))
            return
        tried: dict[str, list[QueuedChange]] = {}
        for change in waiting:
            if change.batch:
                tried.setdefault(change.batch, []).append(change)
        yield from tried.values()
        ready: dict[str, QueuedChange] = {}
        replaced: list[int] = []
        later: list[QueuedChange] = []
        barrier = PathBarrier()  # paths of the later ones, which block only their successors
        for change in waiting:
            key = change.key
            if change.batch:
                continue
            if (
                not change.done
                or key in self._barrier
                or key in barrier
                or self._in_flight.blocks(key)
            ):
                later.append(change)
                barrier.add(key)
            else:
                if key in ready:
                    replaced.append(ready.pop(key).number)
                ready[key] = change
        self._outbox.remove(replaced)
        yield from self._batches(list(ready.values()))
        yield from ([change] for change in later)

    def _newest(self, waiting: Sequence[QueuedChange]) -> Iterator[QueuedChange]:
        """Skip changes of a postponed path that a later change replaces."""
        last = {change.key: change for change in waiting if change.done}
        for change in waiting:
            newest = last.get(change.key, change)
            if not change.rounds or newest is change or not change.done:
                yield change
                continue
            newest.rounds, newest.due = change.rounds, change.due
            newest.attempts, newest.reason = change.attempts, change.reason
            self._outbox.reschedule([newest])
            self._outbox.remove([change.number])

    def _batches(self, changes: Sequence[QueuedChange]) -> Iterator[list[QueuedChange]]:
        batch: list[QueuedChange] = []
        size = 0
        for change in changes:
            batch.append(change)
            size += change.size
            if size >= self._batch_bytes:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _submit(self, changes: list[QueuedChange]) -> None:
        if self._batch_bytes and not changes[0].batch:
            # A retry repeats the same batch, so that the receiver recognises its id.
            for change in changes:
                change.batch = changes[0].id
            self._outbox.reschedule(changes)
        self._in_flight.submit(changes)

    def _wait_for_capacity(self, size: int) -> None:
        """Process completed requests until another request of this size may be sent."""
        while flight := self._in_flight.wait_for_capacity(size):
            self._complete(flight)

    def _settle_completed(self) -> None:
        while flight := self._in_flight.next_completed():
            self._complete(flight)

    def _complete(self, flight: Flight) -> None:
        """Record the outcome of a request, and submit its successor."""
        successors = flight.successors
        may_continue = self._settle(flight)
        if may_continue and successors and not self._interrupt.is_set():
            self._in_flight.submit([successors.popleft()], successors)
        elif successors:
            self._block(successors)
            self._postponed_from = min(self._postponed_from, successors[0].number)
            if not self._interrupt.is_set():
                self.next_dispatch = time.time()  # merges the postponed changes of a path
        if self._dispatch_on_completion:
            self.next_dispatch = min(self.next_dispatch, max(time.time(), self.rest_until))

    def _settle(self, flight: Flight) -> bool:
        """Record the outcome of a request; return whether the path's next change may be sent."""
        retry_after: float | None = None
        answered = permanent = False
        error = flight.error
        if error is None:
            self._accept(flight.changes)
            return True
        if isinstance(error, GoneError):
            return True
        if isinstance(error, SenderLockLostError):
            self.next_dispatch = time.time()
            self._block(flight.changes)
            return False
        if isinstance(error, RefusedError):
            answered, permanent = True, error.permanent
            reason, retry_after = str(error), error.retry_after
        else:
            # The text of a client's error may quote the URL with a password.
            reason = f"no response ({type(error).__name__})"
        for change in flight.changes:
            change.tries += 1
            change.attempts += 1
            change.reason = reason
        if permanent or self._is_exhausted(flight.changes[0]):
            self._give_up(flight.changes, reason)
            return True
        self._postpone(flight.changes, answered, retry_after)
        return False

    def _accept(self, changes: list[QueuedChange]) -> None:
        if self._outages:
            # The receiver is back, so skip the growing pauses.
            self._retry_now = True
            self.not_before, self.next_dispatch = 0.0, time.time()
        self._outages = 0
        self._outage_logged = self._drop_logged = False
        with self._accepting:
            self._accepted += changes
        self.counter.add_delivered(len(changes))
        if len(self._accepted) >= _MAX_ACCEPTED:
            self.write_accepted()

    def _is_exhausted(self, change: QueuedChange) -> bool:
        policy = self._retry_policy
        if change.tries < policy.tries:
            return False
        return not policy.durable or time.time() - change.recorded > policy.give_up_seconds

    def _postpone(
        self, changes: list[QueuedChange], answered: bool, retry_after: float | None
    ) -> None:
        now = time.time()
        policy = self._retry_policy
        pause = policy.pause_seconds
        exhausted = changes[0].tries >= policy.tries
        if exhausted:
            pause = policy.backoff(changes[0].rounds + 1)
            if not self._outage_logged:
                _log.warning(
                    "The webhook's receiver accepts no changes (%s); they are kept for later",
                    changes[0].reason,
                )
                self._outage_logged = True
        for change in changes:
            change.tries = 0 if exhausted else change.tries
            change.rounds += exhausted
            change.due = now + max(pause, min(retry_after or 0, MAX_PAUSE_SECONDS))
        if retry_after is not None:
            self.not_before, self._server_asked_delay = changes[0].due, True
        elif policy.durable and not answered:
            # The receiver is unreachable, so pause all changes, not only this one.
            self._outages += exhausted and self.not_before <= now
            self.not_before = now + (policy.backoff(max(self._outages, 1)) if exhausted else pause)
            self._server_asked_delay = False
        self._outbox.reschedule(changes)
        self._block(changes)
        self.next_dispatch = min(self.next_dispatch, max(changes[0].due, self.not_before))
        if changes[0].tries:
            self._postponed_from = min(self._postponed_from, changes[0].number)

    def _give_up(self, changes: list[QueuedChange], reason: str) -> None:
        self._outbox.give_up(changes)
        self.counter.add_failed(FailedDelivery(c.method, c.path, reason) for c in changes)
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        _log.warning(
            "The webhook's receiver did not accept a change, which is given up: %s %s%s: %s",
            changes[0].method,
            changes[0].path,
            more,
            reason,
        )

    def evict(self, max_changes: int, max_bytes: int) -> None:
        """Drop replaced changes, then the oldest ones, beyond the limits; thread-safe."""
        count, size = self._outbox.totals()
        if count <= max_changes and size <= max_bytes:
            return
        sending = {*self._in_flight.numbers, *(change.number for change in self._accepted)}
        waiting = [c for c in self._outbox.pending() if c.number not in sending]
        last = {change.key: change.number for change in waiting}
        replaced = [c for c in waiting if c.number != last[c.key] and not c.batch]
        rest = [c for c in waiting if c.number == last[c.key] or c.batch]
        count -= len(replaced)
        size -= sum(change.size for change in replaced)
        dropped = []
        # A tenth more than needed, so that the next changes do not evict again.
        for change in rest[:-1]:
            if count <= 0.9 * max_changes and size <= 0.9 * max_bytes:
                break
            change.reason = "dropped: too much was waiting"
            dropped.append(change)
            count -= 1
            size -= change.size
        self._outbox.remove([change.number for change in replaced])
        if not dropped:
            return
        self._outbox.give_up(dropped, keep_contents=False)
        self.counter.add_failed(FailedDelivery(c.method, c.path, c.reason) for c in dropped)
        if not self._drop_logged:
            _log.warning(
                "The webhook's receiver is too slow or unreachable: the oldest changes are dropped"
            )
        self._drop_logged = True
