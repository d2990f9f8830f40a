"""What waits goes out: oldest first, independent paths side by side, the rest is put off.

A change waits for those of the same path, above and below it, so nothing can overtake.
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
    NotOursError,
    PathBarrier,
    Send,
)
from oh_jupyter.storage.webhook.outbox import Outbox

MAX_PAUSE_SECONDS = 120.0
"""The longest pause between two requests for a change, even if the receiver asks for more."""

PROBE_SECONDS = 10.0
"""A new change is tried within this time, whatever pause those before it are in."""

_log = logging.getLogger(__name__)
_UNDONE_SECONDS = 1.0
_REST_SECONDS_PER_CHANGE = 0.0001
_MAX_ACCEPTED = 64
_ACCEPT_SECONDS = 0.2


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is repeated, and when.

    After ``tries`` in quick succession, if ``durable``, pauses grow fourfold, up to
    `MAX_PAUSE_SECONDS`, a fifth more or less.
    """

    durable: bool = False
    tries: int = 3
    pause_seconds: float = 1.0
    backoff_seconds: float = 5.0
    give_up_seconds: float = 5 * 86400.0  # at that age it becomes a dead letter

    def backoff(self, rounds: int) -> float:
        """Seconds to wait after so many rounds of quick tries."""
        grown: float = self.backoff_seconds * 4.0 ** min(rounds - 1, 20)
        return min(grown, MAX_PAUSE_SECONDS / 1.2) * random.uniform(0.8, 1.2)


class Dispatcher:
    """Sends what waits, and remembers what became of it; for one thread unless said."""

    def __init__(
        self,
        send: Send,
        outbox: Outbox,
        retry_policy: RetryPolicy,
        batch_bytes: int,
        on_answer: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._in_flight = InFlightRequests(send, outbox, on_answer)
        self._retry_policy = retry_policy
        self._batch_bytes = batch_bytes  # contents of a full request; 0 for one change a request
        self._barrier = PathBarrier()  # paths that are put off
        self._accepted: list[QueuedChange] = []
        self._accepted_at = 0.0
        self._accepting = threading.Lock()
        self._done: set[int] = set()  # of those that wait
        self._look_after_answer = False
        self._outages = 0  # rounds in a row in which nobody answered
        self._server_asked_delay = False  # whether it was the receiver who asked us to hold
        self._retry_now = False
        self._told = self._dropping = False  # whether the log says so already
        self._put_off_from = math.inf
        self.counter = DeliveryCounter()
        self.next_look = math.inf  # times are seconds since the epoch
        self.open_from = math.inf  # number of the first change whose quick tries are not over
        self.not_before = 0.0  # until when the receiver is left alone
        self.rest_until = 0.0  # when it is worth looking for what is new
        self._interrupt = threading.Event()

    # What any thread may call:

    def retry_now(self) -> None:
        """Try at once what waits for a growing pause, as somebody asks for it."""
        self._retry_now = True

    def interrupt(self) -> None:
        """Begin no more requests until `resume`."""
        self._interrupt.set()

    def resume(self) -> None:
        """Begin requests again."""
        self._interrupt.clear()

    @property
    def has_answers(self) -> bool:
        """Whether requests are over that `proceed` has not looked at."""
        return self._in_flight.has_answers

    @property
    def is_sending(self) -> bool:
        """Whether requests are on their way."""
        return bool(self._in_flight)

    def write_accepted(self) -> None:
        """Forget what was accepted: not one by one, since each time costs a transaction."""
        with self._accepting:
            self._accepted_at = time.monotonic()
            if self._accepted:
                self._outbox.accept(self._accepted)
                self._accepted = []

    def count_pending(self) -> int:
        """Count the changes that the receiver has not accepted."""
        with self._accepting:
            accepted = {change.number for change in self._accepted}
            if not accepted:
                return self._outbox.totals()[0]
            return sum(change.number not in accepted for change in self._outbox.pending())

    def fresh_not_before(self) -> float:
        """Until when a new change has to wait for the sake of those before it."""
        probe = math.inf if self._server_asked_delay else self._in_flight.last_begun + PROBE_SECONDS
        return max(min(self.not_before, probe), self.rest_until)

    # What the thread of the queue calls:

    def start(self) -> None:
        """Start the threads that make requests."""
        self._in_flight.start()

    def look(self, fresh: Sequence[int]) -> None:
        """Send what can be sent of all that waits; some of it was done since the last look."""
        import sqlite3

        self._done.update(fresh)
        try:
            with contextlib.suppress(sqlite3.Error):  # a full disk need not keep us from sending
                self._outbox.mark_done(fresh)
            self._outbox.sender_lock.acquire()
            try:
                self._take_answers()
                self._look(set(fresh))
            finally:
                self._finish()
        except (sqlite3.Error, OSError) as error:
            self._report_broken(error)

    def proceed(self) -> None:
        """Take answers, and send what waited for them."""
        import sqlite3

        try:
            self._take_answers()
            self._finish()
        except (sqlite3.Error, OSError) as error:
            self._report_broken(error)

    def close(self) -> None:
        """End the threads that make requests."""
        self._in_flight.close()

    def _report_broken(self, error: Exception) -> None:
        _log.warning("The outbox cannot be used at the moment: %s", error)
        self._put_off_from = math.inf
        self.next_look = time.time() + self._retry_policy.backoff_seconds

    def _finish(self) -> None:
        self.open_from = min(self._put_off_from, *self._in_flight.numbers, math.inf)
        if not self._in_flight or time.monotonic() > self._accepted_at + _ACCEPT_SECONDS:
            self.write_accepted()
        if not self._in_flight:
            self._outbox.sender_lock.release()
            self._outbox.maintain()

    def _look(self, fresh: set[int]) -> None:
        retry_now, self._retry_now = self._retry_now, False
        if self.not_before <= time.time():
            self._server_asked_delay = False
        if retry_now and not self._server_asked_delay:
            self.not_before = 0.0
        elif fresh:
            self.not_before = min(self.not_before, self.fresh_not_before())
        gone = {change.number for change in self._accepted}
        pending = [c for c in self._outbox.pending() if c.number not in gone]
        for change in pending:
            change.done = change.done or change.number in self._done
        self._done.intersection_update(change.number for change in pending)
        self._hasten(pending, fresh)
        self._barrier = PathBarrier()
        self.next_look = self._put_off_from = math.inf
        self._look_after_answer = False
        left = 0
        waiting = [change for change in pending if change.number not in self._in_flight.numbers]
        for request in self._requests_to_make(waiting):
            if not self._try_or_wait(request, retry_now):
                left += len(request)
                self._block(request)
        # Looking at much that has to wait costs time, so it is not done for each new change.
        self.rest_until = time.time() + _REST_SECONDS_PER_CHANGE * left

    def _hasten(self, pending: Sequence[QueuedChange], fresh: set[int]) -> None:
        """Try a path soon that waits for a growing pause, as there is something new for it."""
        keys = {change.key for change in pending if change.number in fresh}
        soon = time.time() + PROBE_SECONDS
        batches = {c.batch for c in pending if c.key in keys and c.batch}
        found = [
            c
            for c in pending
            if c.rounds and c.due > soon and (c.key in keys or c.batch in batches)
        ]
        if found and not self._server_asked_delay:
            for change in found:
                change.due = soon
            self._outbox.reschedule(found)

    def _block(self, changes: Iterable[QueuedChange]) -> None:
        for change in changes:
            self._barrier.add(change.key)

    def _try_or_wait(self, request: list[QueuedChange], retry_now: bool) -> bool:
        """Begin a request, or leave it for later. Gives whether it is begun."""
        if not all(change.done for change in request):
            self.next_look = min(self.next_look, time.time() + _UNDONE_SECONDS)
            return False
        if any(change.key in self._barrier for change in request):
            return False
        if any(self._in_flight.blocks(change.key) for change in request):
            if not self._batch_bytes and self._in_flight.follow(request[0]):
                return True
            self._look_after_answer = True
            self._put_off_from = min(self._put_off_from, request[0].number)
            return False
        late = max(change.due for change in request)
        if retry_now and all(change.tries == 0 for change in request):
            late = 0.0
        if late <= time.time() and self.not_before <= time.time():
            self._wait_for_room(sum(change.size for change in request))
        if max(late, self.not_before) > time.time():
            self.next_look = min(self.next_look, max(self.not_before, late))
            if not self._retry_policy.durable or any(change.tries for change in request):
                self._put_off_from = min(self._put_off_from, request[0].number)
        elif self._interrupt.is_set():
            self._put_off_from = min(self._put_off_from, request[0].number)
        elif any(change.key in self._barrier for change in request):
            pass  # what is above or below it was put off in between
        else:
            self._begin(request)
            return True
        return False

    def _requests_to_make(self, waiting: Sequence[QueuedChange]) -> Iterator[list[QueuedChange]]:
        """Go through the requests to make, oldest first."""
        if not self._batch_bytes:
            yield from ([change] for change in self._newest(waiting))
            return
        begun: dict[str, list[QueuedChange]] = {}
        for change in waiting:
            if change.batch:
                begun.setdefault(change.batch, []).append(change)
        yield from begun.values()
        free: dict[str, QueuedChange] = {}
        replaced: list[int] = []
        later: list[QueuedChange] = []
        barrier = PathBarrier()  # of those later ones, which hold up only what comes after them
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
                if key in free:
                    replaced.append(free.pop(key).number)
                free[key] = change
        self._outbox.remove(replaced)
        yield from self._batches(list(free.values()))
        yield from ([change] for change in later)

    def _newest(self, waiting: Sequence[QueuedChange]) -> Iterator[QueuedChange]:
        """Leave out what a later change of a path replaces, where the path is put off."""
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

    def _begin(self, changes: list[QueuedChange]) -> None:
        if self._batch_bytes and not changes[0].batch:
            # The same request again later, so that the receiver knows it by its id.
            for change in changes:
                change.batch = changes[0].id
            self._outbox.reschedule(changes)
        self._in_flight.begin(changes)

    def _wait_for_room(self, size: int) -> None:
        """Wait until another request of so many bytes may be made."""
        while flight := self._in_flight.answer_before(size):
            self._take(flight)

    def _take_answers(self) -> None:
        while flight := self._in_flight.answer():
            self._take(flight)

    def _take(self, flight: Flight) -> None:
        """Note what became of a request, and begin the one that waited for it."""
        successors = flight.successors
        goes_on = self._settle(flight)
        if goes_on and successors and not self._interrupt.is_set():
            self._in_flight.begin([successors.popleft()], successors)
        elif successors:
            self._block(successors)
            self._put_off_from = min(self._put_off_from, successors[0].number)
            if not self._interrupt.is_set():
                self.next_look = time.time()  # of those that are put off only the last is kept
        if self._look_after_answer:
            self.next_look = min(self.next_look, max(time.time(), self.rest_until))

    def _settle(self, flight: Flight) -> bool:
        """Decide what an answer means. Gives whether the next change of the path may be sent."""
        retry_after: float | None = None
        answered = permanent = False
        error = flight.error
        if error is None:
            self._accept(flight.changes)
            return True
        if isinstance(error, GoneError):
            return True
        if isinstance(error, NotOursError):
            self.next_look = time.time()
            self._block(flight.changes)
            return False
        if isinstance(error, RefusedError):
            answered, permanent = True, error.permanent
            reason, retry_after = str(error), error.retry_after
        else:
            # The text of a client's error may quote the URL, and with it a password.
            reason = f"no answer ({type(error).__name__})"
        for change in flight.changes:
            change.tries += 1
            change.attempts += 1
            change.reason = reason
        if permanent or self._is_over(flight.changes[0]):
            self._give_up(flight.changes, reason)
            return True
        self._put_off(flight.changes, answered, retry_after)
        return False

    def _accept(self, changes: list[QueuedChange]) -> None:
        if self._outages:
            # It is back: what waits for a growing pause need not wait for its end.
            self._retry_now = True
            self.not_before, self.next_look = 0.0, time.time()
        self._outages = 0
        self._told = self._dropping = False
        with self._accepting:
            self._accepted += changes
        self.counter.add_delivered(len(changes))
        if len(self._accepted) >= _MAX_ACCEPTED:
            self.write_accepted()

    def _is_over(self, change: QueuedChange) -> bool:
        policy = self._retry_policy
        if change.tries < policy.tries:
            return False
        return not policy.durable or time.time() - change.recorded > policy.give_up_seconds

    def _put_off(
        self, changes: list[QueuedChange], answered: bool, retry_after: float | None
    ) -> None:
        now = time.time()
        policy = self._retry_policy
        pause = policy.pause_seconds
        spent = changes[0].tries >= policy.tries
        if spent:
            pause = policy.backoff(changes[0].rounds + 1)
            if not self._told:
                _log.warning(
                    "The receiver accepts nothing for now (%s); changes are kept for later",
                    changes[0].reason,
                )
                self._told = True
        for change in changes:
            change.tries = 0 if spent else change.tries
            change.rounds += spent
            change.due = now + max(pause, min(retry_after or 0, MAX_PAUSE_SECONDS))
        if retry_after is not None:
            self.not_before, self._server_asked_delay = changes[0].due, True
        elif policy.durable and not answered:
            # Nobody is there: the others need not find that out one by one.
            self._outages += spent and self.not_before <= now
            self.not_before = now + (policy.backoff(max(self._outages, 1)) if spent else pause)
            self._server_asked_delay = False
        self._outbox.reschedule(changes)
        self._block(changes)
        self.next_look = min(self.next_look, max(changes[0].due, self.not_before))
        if changes[0].tries:
            self._put_off_from = min(self._put_off_from, changes[0].number)

    def _give_up(self, changes: list[QueuedChange], reason: str) -> None:
        self._outbox.give_up(changes)
        self.counter.add_failed(FailedDelivery(c.method, c.path, reason) for c in changes)
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        _log.warning(
            "A change was not accepted by the receiver and is given up: %s %s%s: %s",
            changes[0].method,
            changes[0].path,
            more,
            reason,
        )

    def evict(self, max_changes: int, max_bytes: int) -> None:
        """Drop what is pointless, then the oldest, if too much waits; any thread may call it."""
        count, size = self._outbox.totals()
        if count <= max_changes and size <= max_bytes:
            return
        sending = {*self._in_flight.numbers, *(change.number for change in self._accepted)}
        waiting = [c for c in self._outbox.pending() if c.number not in sending]
        last = {change.key: change.number for change in waiting}
        pointless = [c for c in waiting if c.number != last[c.key] and not c.batch]
        rest = [c for c in waiting if c.number == last[c.key] or c.batch]
        count -= len(pointless)
        size -= sum(change.size for change in pointless)
        dropped = []
        # A tenth more than needed, so that not each further change has to look again.
        for change in rest[:-1]:
            if count <= 0.9 * max_changes and size <= 0.9 * max_bytes:
                break
            change.reason = "dropped: too much was waiting"
            dropped.append(change)
            count -= 1
            size -= change.size
        self._outbox.remove([change.number for change in pointless])
        if not dropped:
            return
        self._outbox.give_up(dropped, keep_contents=False)
        self.counter.add_failed(FailedDelivery(c.method, c.path, c.reason) for c in dropped)
        if not self._dropping:
            _log.warning("The receiver is too slow or away: the oldest changes are dropped")
        self._dropping = True
