"""One look at everything that waits: what can be sent now is sent, the rest is put off."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from oh_jupyter.storage.webhook.changes import FailedDelivery, RefusedError, Update
from oh_jupyter.storage.webhook.outbox import Outbox, Waiting
from oh_jupyter.storage.webhook.path_barrier import PathBarrier
from oh_jupyter.storage.webhook.retry import MAX_PAUSE_SECONDS, RetryPolicy

__all__ = ["Dispatcher", "Send", "WebhookRequest"]

_log = logging.getLogger(__name__)
_REMEMBERED_FAILURES = 1000
_UNREADY_SECONDS = 1.0
_REST_SECONDS = 0.0001
_SETTLED = 64
_SETTLE_SECONDS = 0.2


@dataclass(frozen=True)
class WebhookRequest:
    """What one request is made of.

    Attributes:
        id: The same for each try.
        changes: What it reports.
        contents: Of each change; an open file where they are large.
    """

    id: str
    changes: Sequence[Waiting]
    contents: Sequence[bytes | IO[bytes]]


Send = Callable[[WebhookRequest], None]
"""Makes a request; raises if it was not accepted."""


class Dispatcher:
    """Sends what waits, and remembers what became of it.

    Args:
        send: Makes a request.
        outbox: Where the changes wait.
        retry_policy: How patient to be.
        batch_bytes: Contents of a full request; 0 for one change a request.

    Attributes:
        wake: When to look again, in seconds since the epoch.
        not_before: When the receiver wants to hear of us again.
        rest: When it is worth looking for what is new.
        open_from: Number of the first change whose quick tries are not over.
        interrupt: Set it to end a round early.
    """

    def __init__(
        self, send: Send, outbox: Outbox, retry_policy: RetryPolicy, batch_bytes: int
    ) -> None:
        self._send = send
        self._outbox = outbox
        self._retry_policy = retry_policy
        self._batch_bytes = batch_bytes
        self._lock = threading.Lock()
        self._delivered = 0
        self._failed: deque[FailedDelivery] = deque(maxlen=_REMEMBERED_FAILURES)
        self._sending: set[int] = set()  # and what was accepted, and is not forgotten yet
        self._accepted: list[Waiting] = []
        self._settled = 0.0
        self._ready: set[int] = set()  # of those that wait
        self._away = 0  # rounds in a row in which nobody answered
        self._server_asked_delay = False  # whether it was the receiver who asked us to hold
        self._retry_at_once = False
        self._told = self._dropping = False  # whether the log says so already
        self.wake = self.open_from = math.inf
        self.not_before = self.rest = 0.0
        self.interrupt = threading.Event()

    def results(self) -> tuple[int, tuple[FailedDelivery, ...]]:
        """Count what was accepted and given up since the last time."""
        with self._lock:
            delivered, failed = self._delivered, tuple(self._failed)
            self._delivered = 0
            self._failed.clear()
        return delivered, failed

    def retry_now(self) -> None:
        """Try at once what waits for a growing pause, as somebody asks for it."""
        self._retry_at_once = True

    def lost(self, update: Update, reason: str) -> None:
        """Note a change that could not even be kept."""
        with self._lock:
            self._failed.append(FailedDelivery(update.method, update.path, reason))

    def run(self, fresh: Sequence[int]) -> None:
        """Have a round.

        Args:
            fresh: Changes that are ready since the last one.
        """
        import sqlite3

        self._ready.update(fresh)
        try:
            with contextlib.suppress(sqlite3.Error):  # a full disk need not keep us from sending
                self._outbox.ready(fresh)
            with self._outbox.turn():
                try:
                    self._look()
                finally:
                    self._settle()
            self._outbox.tidy()
        except (sqlite3.Error, OSError) as error:
            _log.warning("The outbox cannot be used at the moment: %s", error)
            self.open_from, self.wake = math.inf, time.time() + self._retry_policy.backoff

    def _look(self) -> None:
        retry_at_once, self._retry_at_once = self._retry_at_once, False
        if retry_at_once and not self._server_asked_delay:
            self.not_before = 0.0
        gone = {change.number for change in self._accepted}
        waiting = [c for c in self._outbox.waiting() if c.number not in gone]
        for change in waiting:
            change.ready = change.ready or change.number in self._ready
        self._ready.intersection_update(change.number for change in waiting)
        blocked = PathBarrier()
        wake = open_from = math.inf
        left = 0
        for job in self._jobs(waiting, blocked, retry_at_once):
            now = time.time()
            late = max(change.due for change in job)
            if retry_at_once and all(change.tries == 0 for change in job):
                late = 0.0
            if not all(change.ready for change in job):
                wake = min(wake, now + _UNREADY_SECONDS)
            elif any(change.key in blocked for change in job):
                pass
            elif self.not_before > now or late > now:
                wake = min(wake, max(self.not_before, late))
                if not self._retry_policy.durable or any(change.tries for change in job):
                    open_from = min(open_from, job[0].number)
            elif self.interrupt.is_set():
                open_from = min(open_from, job[0].number)
                wake = now
            elif self._try(job):
                continue
            else:
                wake = min(wake, max(job[0].due, self.not_before))
                if job[0].tries:
                    open_from = min(open_from, job[0].number)
            left += len(job)
            for change in job:
                blocked.add(change.key)
        self.wake, self.open_from = wake, open_from
        # Looking at much that has to wait costs time, so it is not done for each new change.
        self.rest = time.time() + _REST_SECONDS * left

    def _jobs(
        self, waiting: Sequence[Waiting], blocked: PathBarrier, retry_at_once: bool
    ) -> Iterator[list[Waiting]]:
        """Go through the requests to make, oldest first."""
        if not self._batch_bytes:
            yield from ([change] for change in self._latest(waiting))
            return
        begun: dict[str, list[Waiting]] = {}
        for change in waiting:
            if change.batch:
                begun.setdefault(change.batch, []).append(change)
        yield from begun.values()
        loose = [change for change in waiting if not change.batch]
        free: dict[str, Waiting] = {}
        replaced: list[int] = []
        for change in loose:
            if not change.ready or change.key in blocked:
                yield [change]  # to be waited for
            elif change.key in free:
                replaced.append(free.pop(change.key).number)
                free[change.key] = change
            else:
                free[change.key] = change
        self._outbox.remove(replaced)
        yield from self._batches(list(free.values()))

    def _latest(self, waiting: Sequence[Waiting]) -> Iterator[Waiting]:
        """Leave out what a later change of a path replaces, where the path is put off."""
        last = {change.key: change for change in waiting if change.ready}
        for change in waiting:
            newest = last.get(change.key, change)
            if not change.rounds or newest is change or not change.ready:
                yield change
                continue
            newest.rounds, newest.due = change.rounds, change.due
            self._outbox.put_off([newest])
            self._outbox.remove([change.number])

    def _batches(self, changes: Sequence[Waiting]) -> Iterator[list[Waiting]]:
        batch: list[Waiting] = []
        size = 0
        for change in changes:
            batch.append(change)
            size += change.size
            if size >= self._batch_bytes:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _try(self, job: list[Waiting]) -> bool:
        """Make a request. Returns whether its changes wait no more."""
        if self._batch_bytes and not job[0].batch:
            # The same request again later, so that the receiver knows it by its id.
            for change in job:
                change.batch = job[0].id
            self._outbox.stamp(job, job[0].id)
        retry_after: float | None = None
        answered = permanent = False
        self._sending |= {change.number for change in job}
        try:
            self._request(job)
        except RefusedError as error:
            answered, permanent = True, error.permanent
            reason, retry_after = str(error), error.retry_after
        except Exception as error:
            # The text of a client's error may quote the URL, and with it a password.
            reason = f"no answer ({type(error).__name__})"
        else:
            self._away = 0
            self._server_asked_delay = self._told = self._dropping = False
            self._accepted += job
            late = time.monotonic() > self._settled + _SETTLE_SECONDS
            if late or len(self._accepted) >= _SETTLED:
                self._settle()
            return True
        finally:
            self._sending = {change.number for change in self._accepted}
        for change in job:
            change.tries += 1
            change.attempts += 1
            change.reason = reason
        if permanent or self._is_over(job[0]):
            self._give_up(job, reason)
            return True
        self._put_off(job, answered, retry_after)
        return False

    def _settle(self) -> None:
        """Forget what was accepted: not one by one, since each time costs a transaction."""
        self._settled = time.monotonic()
        if self._accepted:
            self._outbox.accepted(self._accepted)  # or they stay, and are not sent again
            with self._lock:
                self._delivered += len(self._accepted)
            self._accepted = []

    def _request(self, job: list[Waiting]) -> None:
        with contextlib.ExitStack() as opened:
            found = [
                (change, opened.enter_context(self._outbox.contents(change.number)))
                for change in job
            ]
            there = [(change, data) for change, data in found if data is not None]
            if there:
                changes, contents = zip(*there, strict=True)
                self._send(WebhookRequest(job[0].batch or job[0].id, changes, contents))

    def _is_over(self, change: Waiting) -> bool:
        if change.tries < self._retry_policy.tries:
            return False
        return (
            not self._retry_policy.durable
            or time.time() - change.recorded > self._retry_policy.give_up
        )

    def _put_off(self, job: list[Waiting], answered: bool, retry_after: float | None) -> None:
        now = time.time()
        pause = self._retry_policy.pause
        spent = job[0].tries >= self._retry_policy.tries
        if spent:
            pause = self._retry_policy.after(job[0].rounds + 1)
            if not self._told:
                _log.warning("The receiver accepts nothing for now; changes are kept for later")
                self._told = True
        for change in job:
            change.tries = 0 if spent else change.tries
            change.rounds += spent
            change.due = now + max(pause, min(retry_after or 0, MAX_PAUSE_SECONDS))
        if retry_after is not None:
            self.not_before, self._server_asked_delay = job[0].due, True
        elif self._retry_policy.durable and not answered:
            # Nobody is there: the others need not find that out one by one.
            self._away += spent
            self.not_before = now + (self._retry_policy.after(self._away) if spent else pause)
            self._server_asked_delay = False
        self._outbox.put_off(job)

    def _give_up(self, job: list[Waiting], reason: str) -> None:
        self._outbox.give_up(job)
        with self._lock:
            self._failed.extend(FailedDelivery(c.method, c.path, reason) for c in job)
        more = f" and {len(job) - 1} more" if len(job) > 1 else ""
        _log.warning(
            "A change was not accepted by the receiver and is given up: %s %s%s: %s",
            job[0].method,
            job[0].path,
            more,
            reason,
        )

    def evict(self, max_changes: int, max_bytes: int) -> None:
        """Drop what is pointless, then the oldest, if too much waits.

        Args:
            max_changes: Changes that may wait.
            max_bytes: Contents that may wait.
        """
        count, size = self._outbox.totals()
        if count <= max_changes and size <= max_bytes:
            return
        waiting = [c for c in self._outbox.waiting() if c.number not in self._sending]
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
        with self._lock:
            self._failed.extend(FailedDelivery(c.method, c.path, c.reason) for c in dropped)
        if not self._dropping:
            _log.warning("The receiver is too slow or away: the oldest changes are dropped")
        self._dropping = True
