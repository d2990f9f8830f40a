"""Owner of a webhook's deliveries: records changes, plans requests, and records their outcomes.

One thread alternates between waiting for an event (a new change, an outcome, a due time) and one
step of work. Where no thread can be started, as at exit, the waiting caller takes the steps.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import NamedTuple

from oh_jupyter.background import try_start_thread
from oh_jupyter.storage.webhook import scheduler
from oh_jupyter.storage.webhook.batching import BatchPolicy, FreshChanges
from oh_jupyter.storage.webhook.changes import (
    Change,
    DeliveryReport,
    FailedDelivery,
    PendingChange,
    Request,
)
from oh_jupyter.storage.webhook.lanes import Lanes
from oh_jupyter.storage.webhook.outbox import OUTBOX_ERRORS, Outbox, cause_of
from oh_jupyter.storage.webhook.scheduler import Pause, Plan, RetryPolicy
from oh_jupyter.storage.webhook.sender import Outcome, Send, Sender

MAX_OUTBOX_BYTES = 1 << 30
"""Maximum size of the pending contents in an outbox, which may hold the changes of several days."""

MAX_TEMPORARY_BYTES = 1 << 28
"""Maximum size of the pending contents without an outbox."""

EXIT_SECONDS = 10.0
"""Time limit at exit for all changes that are not on disk."""

DURABLE_SECONDS = 5.0
"""Time limit at exit for changes on disk; the next start sends the rest."""

_log = logging.getLogger(__name__)
_MAX_FAILURES = 1000
_PATH_LOCKS = 64
# Planning many changes takes time, so not every new change starts it.
_REST_SECONDS_PER_CHANGE = 0.0001
_LOCK_SECONDS = 1.0


class _Flush(NamedTuple):
    """A caller that waits for all changes up to a number."""

    target: int
    done: threading.Event


class Dispatcher:
    """Reports changes to a receiver, in order and at least once.

    Beyond 1 GiB on disk or 256 MiB without an outbox, it drops changes: first those that a
    later change of their path replaces, then the oldest.
    """

    def __init__(
        self,
        send: Send,
        outbox: Outbox,
        batch_policy: BatchPolicy,
        retry_policy: RetryPolicy = RetryPolicy(),  # noqa: B008  immutable
    ) -> None:
        self.outbox = outbox
        self.durable = outbox.path is not None
        self._send = send
        self._batch_policy = batch_policy
        self._retry_policy = replace(retry_policy, durable=self.durable)
        self._max_bytes = MAX_OUTBOX_BYTES if self.durable else MAX_TEMPORARY_BYTES
        self._is_closed_at_exit = False
        self._reset()
        _dispatchers.add(self)
        if self.durable:
            outbox.delete_orphans()
            if outbox.count():
                self.wake()

    def _reset(self) -> None:
        self._path_locks = [threading.Lock() for _ in range(_PATH_LOCKS)]
        self._inbox: SimpleQueue[Outcome | None] = SimpleQueue()
        self._sender = Sender(self._send, self.outbox.contents, self._inbox.put)
        # Guarded by the lock:
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._fresh = FreshChanges(self._batch_policy)
        self._flushes: list[_Flush] = []
        self._delivered = 0
        self._failed: deque[FailedDelivery] = deque(maxlen=_MAX_FAILURES)
        self._needs_plan = self._retry_now = False
        self._is_stopping = self._is_halted = self._is_disposed = False
        self._rest_until = 0.0  # of the monotonic clock
        # Of the thread:
        self._plan = Plan()
        self._lanes = Lanes()
        self._pause = Pause()
        self._logged: set[str] = set()

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child; the parent sends the pending changes."""
        self.outbox.reset_after_fork()
        self._reset()

    # Any thread records changes:

    @contextlib.contextmanager
    def recorded(self, changes: Sequence[Change], key: str | None = None) -> Iterator[None]:
        """Record changes while the store applies them; discard them if it raises.

        A lock on the key keeps the changes of one path in order; None locks all paths.
        """
        index = hash(key) % _PATH_LOCKS
        with contextlib.ExitStack() as locks:
            for lock in self._path_locks if key is None else [self._path_locks[index]]:
                locks.enter_context(lock)
            recorded = list(self._record(changes))
            try:
                yield
            except Exception:
                self.outbox.remove([number for number, _ in recorded])
                raise
            except BaseException:  # interrupted: the store may have applied them
                self._enqueue(recorded)
                raise
            self._enqueue(recorded)

    def _record(self, changes: Sequence[Change]) -> Iterator[tuple[int, Change]]:
        for change in changes:
            try:
                yield self.outbox.add(change), change
            except OUTBOX_ERRORS as error:
                # A full disk here must not fail the write.
                cause = cause_of(error)
                _log.warning("A change will not be reported, the outbox cannot keep it: %s", cause)
                reason = f"the outbox failed: {cause}"
                self.outbox.record_loss(change, reason)
                with self._lock:
                    self._failed.append(FailedDelivery(change.method, change.path, reason))

    def _enqueue(self, recorded: Sequence[tuple[int, Change]]) -> None:
        self.outbox.confirm(number for number, _ in recorded)
        with self._lock:
            is_first = not self._fresh.numbers
            for number, change in recorded:
                self._fresh.add(number, change)
            # Once awake, the thread finds later changes itself.
            if recorded and (is_first or self._fresh.is_full or self._is_stopping):
                self._wake_thread()

    def _add_failed(self, changes: Iterable[PendingChange]) -> None:
        with self._lock:
            self._failed.extend(FailedDelivery(c.method, c.path, c.reason or "") for c in changes)

    # Any thread controls the deliveries:

    def wake(self) -> None:
        """Request a plan of what the outbox has."""
        with self._lock:
            self._needs_plan = True
            self._wake_thread()

    def flush(self, timeout_seconds: float | None = None) -> DeliveryReport:
        """Send all changes recorded so far, and wait for the receiver's responses."""
        flush = _Flush(self.outbox.last_number(), threading.Event())
        with self._lock:
            self._flushes.append(flush)
            self._retry_now = True
            self._rest_until = 0.0
            self.wake()
            has_thread = self._thread is not None
        if has_thread:
            flush.done.wait(timeout_seconds)
        else:
            self._work_until(flush.done, timeout_seconds)
        # Otherwise another process would send them again if this one ends now.
        self.outbox.write_accepted()
        with self._lock:
            self._flushes = [each for each in self._flushes if each is not flush]
            report = DeliveryReport(self._delivered, tuple(self._failed), self.outbox.count())
            self._delivered = 0
            self._failed.clear()
        return report

    def close(self, timeout_seconds: float) -> DeliveryReport:
        """Flush, and stop the thread; without an outbox, drop the pending changes."""
        deadline = time.monotonic() + timeout_seconds
        report = self.flush(timeout_seconds)
        with self._lock:
            self._is_halted = True
            self._mark_applied()
            thread = self._thread
        if report.pending and not self.durable:
            _log.warning(
                "%d changes were not delivered within %s s and are dropped",
                report.pending,
                timeout_seconds,
            )
            self.outbox.remove([change.number for change in self.outbox.pending()])
        self.stop()
        if thread is not None:
            thread.join(max(deadline - time.monotonic(), 0))
        return report

    def close_at_exit(self, timeout_seconds: float) -> None:
        """Close at the end of the process."""
        if self._thread is not None or self._fresh.numbers:
            self.close(timeout_seconds)
        self._is_closed_at_exit = True
        if not self.durable:
            self.outbox.close()

    def stop(self, dispose: bool = False) -> None:
        """Let the thread send the pending changes and stop; ``dispose`` also closes the outbox."""
        with self._lock:
            self._is_stopping = True
            self._is_disposed = dispose
            if self._thread is not None:
                self._inbox.put(None)
            elif dispose or self.durable:
                self.outbox.close()

    def _wake_thread(self) -> None:
        """Wake the thread, or start it; the lock is held."""
        self._is_stopping = self._is_halted = False
        self._inbox.put(None)
        if self._thread is not None:
            return
        self._thread = try_start_thread(self._run, "oh-storage-webhook")
        if self._thread is not None:
            self._sender.start()
        elif self.durable:
            self._mark_applied()
        elif self._is_closed_at_exit:
            _log.warning("A change at exit came too late and is not delivered")

    def _mark_applied(self) -> list[int]:
        """Mark the new changes as applied, for other processes and the next start."""
        with self._lock:
            fresh, self._fresh = self._fresh.numbers, FreshChanges(self._batch_policy)
        # Without the mark, others wait until this process has ended.
        with contextlib.suppress(*OUTBOX_ERRORS):
            self.outbox.mark_applied(fresh)
        return fresh

    # The thread works:

    def _run(self) -> None:
        while True:
            with self._lock:
                wait = self._seconds_to_wait()
                if self._may_stop(wait):
                    self._end()
                    return
            self._step(wait)

    def _work_until(self, done: threading.Event, timeout_seconds: float | None) -> None:
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while not done.is_set() and (remaining := deadline - time.monotonic()) > 0:
            self._step(min(remaining, self._seconds_to_wait()))

    def _may_stop(self, wait: float) -> bool:
        """Return whether everything is sent, or kept in the outbox."""
        if not self._is_stopping or self._lanes.in_flight:
            return False
        return self._is_halted or wait == math.inf or (self.durable and wait > 0)

    def _end(self) -> None:
        self._thread = None
        self._sender.stop()
        self._lanes.clear()
        self.outbox.sender_lock.release()
        self._release_flushes(math.inf)
        if self._is_disposed or self.durable:
            self.outbox.close()

    def _step(self, wait: float) -> None:
        """Wait for an event, and do what is due."""
        try:
            outcome = self._inbox.get(wait > 0, None if wait == math.inf else wait)
        except Empty:
            outcome = None
        try:
            if outcome is not None:
                self._settle(outcome)
            if self.outbox.sender_lock.is_lost:
                self._needs_plan = True
            if self._seconds_to_plan() <= 0:
                self._make_plan()
            if self._is_halted:
                self._lanes.clear()
            while self._seconds_to_send() <= 0:
                self._submit(self._lanes.next_lane())
        except OUTBOX_ERRORS as error:
            self._pause_outbox(error)
        if not self._lanes:
            # Another process may send now.
            self.outbox.write_accepted()
            self.outbox.sender_lock.release()
            self.outbox.maintain()
        with self._lock:
            if self._flushes and not self._needs_plan:
                self._release_flushes(min(self._plan.waiting_from, self._lanes.open_from()))

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next work is due; infinite if nothing is."""
        return min(self._seconds_to_plan(), self._seconds_to_send())

    def _seconds_to_send(self) -> float:
        return self._lanes.seconds_to_send(concurrent=self._sender.threads > 0)

    def _seconds_to_plan(self) -> float:
        with self._lock:
            now = time.monotonic()
            wait = 0.0 if self._needs_plan else self._plan.wake_at - time.time()
            if self._fresh.numbers:
                wait = 0.0 if self._is_stopping else min(wait, self._fresh.due - now)
            return max(wait, self._rest_until - now, 0.0)

    def _make_plan(self) -> None:
        with self._lock:
            retry_now, self._retry_now, self._needs_plan = self._retry_now, False, False
        fresh = self._mark_applied()
        self._lanes.clear()
        self._plan = Plan()
        if self._is_halted:
            return
        self.outbox.sender_lock.acquire(None if self._thread is not None else _LOCK_SECONDS)
        pending = self.outbox.pending()
        plan = scheduler.plan(
            pending,
            time.time(),
            self._retry_policy,
            pause=self._pause,
            in_flight=self._lanes.in_flight,
            fresh=set(fresh),
            retry_now=retry_now,
            idle_seconds=time.monotonic() - self._lanes.sent_at,
            batch_bytes=self._batch_policy.batch_bytes,
            max_bytes=self._max_bytes,
        )
        self.outbox.remove([change.number for change in plan.replaced])
        self._drop(plan.dropped)
        with contextlib.suppress(*OUTBOX_ERRORS):  # sending continues with a full disk
            self.outbox.save(plan.rescheduled)
        self._rest_until = time.monotonic() + _REST_SECONDS_PER_CHANGE * len(pending)
        self._plan, self._pause = plan, plan.pause
        self._lanes.replace(plan.lanes)

    def _submit(self, lane: deque[Request]) -> None:
        request = lane.popleft()
        if self._batch_policy.batch_bytes and not request.changes[0].batch:
            # A retry repeats the same batch, so that the receiver recognises its id.
            changes = tuple(change._replace(batch=request.id) for change in request.changes)
            request = Request(request.id, changes)
            with contextlib.suppress(*OUTBOX_ERRORS):  # sending continues with a full disk
                self.outbox.save(changes)
        self._lanes.start(request, lane)
        self._sender.submit(request)

    def _settle(self, outcome: Outcome) -> None:
        """Record the outcome of a request, and submit the next one of its lane."""
        lane = self._lanes.in_flight.pop(outcome.request)
        if self._plan.waits_for_response:
            self._needs_plan = True
        if outcome.failure is None:
            self._accept(outcome.sent)
        else:
            retry = scheduler.after_failure(
                outcome.sent, outcome.failure, self._pause, time.time(), self._retry_policy
            )
            if not retry.is_final:
                self._postpone(retry)
                return
            self._give_up(retry.changes)
        if lane and not self._is_halted:
            self._submit(lane)

    def _accept(self, changes: Sequence[PendingChange]) -> None:
        self.outbox.accept(changes)
        with self._lock:
            self._delivered += len(changes)
            if self._pause.outages:
                # The receiver is back, so skip the growing pauses.
                self._needs_plan = self._retry_now = True
        self._pause = self._pause.shorten(time.time(), 0.0)._replace(outages=0)
        self._logged.clear()

    def _give_up(self, changes: Sequence[PendingChange]) -> None:
        self.outbox.give_up(changes)
        self._add_failed(changes)
        first = changes[0]
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        change = f"{first.method} {first.path}{more}"
        _log.warning(
            "The webhook's receiver did not accept a change, which is given up: %s: %s",
            change,
            first.reason,
        )

    def _drop(self, changes: Sequence[PendingChange]) -> None:
        if changes:
            self.outbox.give_up(changes, keep_contents=False)
            self._add_failed(changes)
            self._log_once(
                "The webhook's receiver is too slow or unreachable: the oldest changes are dropped"
            )

    def _postpone(self, retry: scheduler.Retry) -> None:
        self._needs_plan = True
        if retry.pause.until > self._pause.until:
            self._lanes.clear()
        self._pause = retry.pause
        first = retry.changes[0]
        if first.tries == 0:
            self._log_once(
                "The webhook's receiver accepts no changes (%s); they are kept for later",
                first.reason,
            )
        self.outbox.save(retry.changes)

    def _pause_outbox(self, error: Exception) -> None:
        self._log_once(
            "The outbox is not usable at the moment, retrying later: %s", cause_of(error)
        )
        self._lanes.clear()
        resume_at = time.time() + self._retry_policy.backoff_seconds
        self._pause = self._pause._replace(until=max(self._pause.until, resume_at))
        self._plan = Plan(wake_at=resume_at)
        with self._lock:
            self._release_flushes(math.inf)

    def _log_once(self, message: str, *values: object) -> None:
        """Log a warning, once until a request is accepted."""
        if message not in self._logged:
            self._logged.add(message)
            _log.warning(message, *values)

    def _release_flushes(self, open_from: float) -> None:
        for flush in self._flushes:
            if flush.target < open_from:
                flush.done.set()
        self._flushes = [flush for flush in self._flushes if not flush.done.is_set()]


_dispatchers: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


def _deliver_all() -> None:
    started = time.monotonic()
    # First the changes that would be lost.
    for dispatcher in sorted(_dispatchers, key=lambda dispatcher: dispatcher.durable):
        limit = DURABLE_SECONDS if dispatcher.durable else EXIT_SECONDS
        dispatcher.close_at_exit(max(started + limit - time.monotonic(), 0))


def _reset_after_fork() -> None:
    for dispatcher in list(_dispatchers):
        dispatcher.reset_after_fork()


atexit.register(_deliver_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
