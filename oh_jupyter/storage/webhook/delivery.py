"""Background delivery of changes to a receiver, in order, with an optional outbox."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from oh_jupyter.background import try_start_thread
from oh_jupyter.storage.webhook.changes import Change, DeliveryReport, FailedDelivery
from oh_jupyter.storage.webhook.dispatcher import Dispatcher, RetryPolicy
from oh_jupyter.storage.webhook.in_flight import Send
from oh_jupyter.storage.webhook.outbox import Outbox, OutboxFullError

_log = logging.getLogger(__name__)
_LATE_SECONDS = 0.02
_MAX_REPLACED = 100
_MAX_SLEEP_SECONDS = 1.0
_MAX_CHANGES = 100_000
_PATH_LOCKS = 64


@dataclass(frozen=True)
class BatchPolicy:
    """Timing and size of batches; 0 ``batch_bytes`` sends changes one by one."""

    quiet_seconds: float = 0.0
    max_wait_seconds: float = 0.0
    batch_bytes: int = 0


class DeliveryQueue:
    """Queue of changes for a receiver, and the thread that dispatches them.

    Beyond 1 GiB on disk or 256 MiB without an outbox, it drops changes: first those that a
    later change of their path replaces, then the oldest.
    """

    def __init__(
        self,
        send: Send,
        batch_policy: BatchPolicy,
        *,
        outbox: Outbox | None = None,
    ) -> None:
        self.outbox = Outbox() if outbox is None else outbox
        self.durable = self.outbox.path is not None
        self._send = send
        self._batch_policy = batch_policy
        self._retry_policy = RetryPolicy(durable=self.durable)
        # An outbox may hold the changes of several days.
        self._max_bytes = 1 << 30 if self.durable else 1 << 28
        self._is_closed_at_exit = False
        self._reset()
        _close_at_exit(self)
        if self.durable:
            self.outbox.delete_orphans()
            if self.outbox.totals()[0]:
                self.wake()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._path_locks = [threading.Lock() for _ in range(_PATH_LOCKS)]
        self._thread: threading.Thread | None = None
        self._dispatcher = Dispatcher(
            self._send,
            self.outbox,
            self._retry_policy,
            self._batch_policy.batch_bytes,
            self._notify,
        )
        self._fresh: list[int] = []  # changes that the dispatcher has not seen
        self._newest: dict[
            str, tuple[int, int]
        ] = {}  # number and size of the newest of them, by key
        self._replaced: list[int] = []  # numbers of those that a later change replaces
        self._fresh_bytes = 0
        self._first = self._last = 0.0
        self._passes_requested = self._passes_done = 0
        self._stopping = self._disposed = False
        self._idle = False  # whether the thread is waiting
        self._unchecked = [0, 0]  # changes and bytes since the limits were last checked

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child; the parent sends the pending changes."""
        self.outbox.reset_after_fork()
        self._reset()

    @contextlib.contextmanager
    def recorded(self, changes: Sequence[Change], key: str | None = None) -> Iterator[None]:
        """Record changes while the store applies them; discard them if it raises.

        A lock on the key keeps the changes of one path in order; None locks all paths.
        """
        index = hash(key) % _PATH_LOCKS
        with contextlib.ExitStack() as locks:
            for lock in self._path_locks if key is None else [self._path_locks[index]]:
                locks.enter_context(lock)
            numbers = self._record(changes)
            try:
                yield
            except Exception:
                self.outbox.remove(numbers)
                raise
            except BaseException:  # interrupted: the store may have applied them
                self._enqueue(numbers, changes)
                raise
            self._enqueue(numbers, changes)

    def _record(self, changes: Sequence[Change]) -> list[int]:
        numbers: list[int] = []
        for change in changes:
            try:
                numbers.append(self.outbox.add(change))
            except OutboxFullError as error:
                # A full disk here must not fail the write.
                _log.warning("A change will not be reported, the outbox cannot keep it: %s", error)
                reason = f"the outbox failed: {error}"
                self._dispatcher.counter.add_failed(
                    [FailedDelivery(change.method, change.path, reason)]
                )
                self.outbox.add_dead(change, reason)
        return numbers

    def _enqueue(self, numbers: list[int], changes: Sequence[Change]) -> None:
        with self._changed:
            self._last = time.monotonic()
            is_first = not self._fresh
            if is_first:
                self._first = self._last
            for number, change in zip(numbers, changes, strict=False):
                self._fresh.append(number)
                self._count(number, change)
            if (
                self._unchecked[0] > _MAX_CHANGES // 50
                or self._unchecked[1] > self._max_bytes // 50
            ):
                self._unchecked = [0, 0]
                self._dispatcher.evict(_MAX_CHANGES, self._max_bytes)
            # Once awake, the thread finds later changes itself.
            if is_first or self._is_full or self._stopping:
                self._wake_up()
            self._yield_to_thread()

    @property
    def _is_full(self) -> bool:
        return 0 < self._batch_policy.batch_bytes <= self._fresh_bytes

    def _yield_to_thread(self) -> None:
        """Let the thread run, since a loop of short writes can starve it for seconds."""
        if self._idle and self._time_to_wait() == 0:
            policy = self._batch_policy
            late = time.monotonic() - self._first
            if late > min(policy.max_wait_seconds, policy.quiet_seconds) + _LATE_SECONDS:
                self._changed.wait(_LATE_SECONDS)

    def _count(self, number: int, change: Change) -> None:
        size = len(change.contents)
        self._unchecked[0] += 1
        self._unchecked[1] += size
        if not self._batch_policy.batch_bytes:
            return
        replaced, unsent = self._newest.get(change.key, (0, 0))
        self._newest[change.key] = (number, size)
        self._fresh_bytes += size - unsent
        if replaced:
            # Only the last state of a file that is written repeatedly has to be sent.
            self._replaced.append(replaced)
            if len(self._replaced) > _MAX_REPLACED:
                self.outbox.remove(self._replaced)
                self._replaced = []

    def wake(self) -> None:
        """Request a pass over the outbox."""
        with self._changed:
            self._passes_requested += 1
            self._wake_up()

    def flush(self, timeout_seconds: float | None = None) -> DeliveryReport:
        """Send all changes recorded so far, and wait for the receiver's responses."""
        with self._changed:
            target = self.outbox.last_number()
            self._passes_requested += 1
            requested = self._passes_requested
            self._dispatcher.retry_now()
            self._wake_up()
        self._wait_for(
            lambda: self._passes_done >= requested and self._dispatcher.open_from > target,
            timeout_seconds,
        )
        with self._changed:
            # Otherwise another process would send them again if this one ends now.
            self._dispatcher.write_accepted()
            delivered, failed = self._dispatcher.counter.take()
            return DeliveryReport(delivered, failed, self._dispatcher.count_pending())

    def _wait_for(self, is_done: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait for the thread; without one, do its work here."""
        with self._changed:
            if self._thread is not None:
                self._changed.wait_for(is_done, timeout_seconds)
                return
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while not is_done() and (remaining := deadline - time.monotonic()) > 0:
            time.sleep(min(remaining, self._time_to_wait(), _MAX_SLEEP_SECONDS))
            self._work()

    def close(self, timeout_seconds: float) -> DeliveryReport:
        """Flush, and stop the thread; without an outbox, drop the pending changes."""
        report = self.flush(timeout_seconds)
        with self._changed:
            self._mark_fresh_done()
            if report.pending and not self.durable:
                _log.warning(
                    "%d changes were not delivered within %s s and are dropped",
                    report.pending,
                    timeout_seconds,
                )
                self.outbox.remove([change.number for change in self.outbox.pending()])
            self._dispatcher.interrupt()
        self.stop()
        return report

    def close_at_exit(self, timeout_seconds: float) -> None:
        """Close the queue at the end of the process."""
        if self._thread is not None or self._fresh:
            self.close(timeout_seconds)
        self._is_closed_at_exit = True
        if self.outbox.undurable:
            _log.warning(
                "%d changes are lost: they were not delivered, and the disk of the outbox %r is "
                "full",
                self.outbox.undurable,
                self.outbox.path,
            )
        if not self.durable:
            self.outbox.close()

    @property
    def survives(self) -> bool:
        """True if the pending changes survive the process."""
        return self.durable and not self.outbox.undurable

    def stop(self, dispose: bool = False) -> None:
        """Let the thread send the pending changes and stop; ``dispose`` also closes the outbox."""
        with self._changed:
            self._stopping = True
            self._disposed = dispose
            self._changed.notify_all()
            if self._thread is None and (dispose or self.durable):
                self.outbox.close()

    def _mark_fresh_done(self) -> None:
        """Mark the new changes as applied, for other processes and the next start."""
        import sqlite3

        with contextlib.suppress(sqlite3.Error):  # then they see that this process has ended
            self.outbox.mark_done(self._take_fresh())

    def _take_fresh(self) -> list[int]:
        fresh, self._fresh = self._fresh, []
        self._newest = {}
        self._replaced = []
        self._fresh_bytes = 0
        return fresh

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wake_up(self) -> None:
        self._stopping = False
        self._dispatcher.resume()
        self._changed.notify_all()
        if self._thread is not None:
            return
        self._thread = try_start_thread(self._run, "oh-storage-webhook")
        if self._thread is not None:
            self._dispatcher.start()
        elif self.durable:
            self._mark_fresh_done()
        elif self._is_closed_at_exit:
            _log.warning("A change at exit came too late and is not delivered")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                while (wait := self._time_to_wait()) > 0 and not self._dispatcher.has_completed:
                    if self._can_stop(wait):
                        self._thread = None
                        self._dispatcher.close()
                        if self._disposed or self.durable:
                            self.outbox.close()
                        return
                    self._changed.wait(None if wait == math.inf else wait)
                self._idle = False
            self._work()

    def _work(self) -> None:
        """Send the requests that are due, or process completed ones."""
        with self._changed:
            is_due = self._time_to_wait() <= 0
            requested = self._passes_requested
            fresh = self._take_fresh() if is_due else []
        if is_due:
            self._dispatcher.dispatch(fresh)
        else:
            self._dispatcher.process_completed()
        with self._changed:
            if is_due:
                self._passes_done = requested
            self._changed.notify_all()

    def _can_stop(self, wait: float) -> bool:
        """Return whether the thread may stop: everything is sent, or kept in the outbox."""
        is_done = self.durable or wait == math.inf
        return self._stopping and is_done and not self._dispatcher.is_sending

    def _time_to_wait(self) -> float:
        """Return the seconds until the next work is due; infinite if nothing is pending."""
        if self._passes_requested > self._passes_done:
            return 0
        now = time.time()
        wait = max(self._dispatcher.next_dispatch - now, 0)
        if self._fresh:
            policy = self._batch_policy
            due = min(self._last + policy.quiet_seconds, self._first + policy.max_wait_seconds)
            if self._stopping or self._is_full:
                due = 0
            blocked = self._dispatcher.fresh_not_before() - now
            wait = min(wait, max(due - time.monotonic(), blocked, 0))
        return wait


EXIT_SECONDS = 10.0
"""Time limit at exit for all changes that are not on disk."""

DURABLE_SECONDS = 5.0
"""Time limit at exit for changes on disk; the next start sends the rest."""

_queues: weakref.WeakSet[DeliveryQueue] = weakref.WeakSet()


def _close_at_exit(queue: DeliveryQueue) -> None:
    """Deliver the changes at exit, and on SIGTERM if it has no other handler."""
    _queues.add(queue)
    if queue.durable or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _deliver_all() -> None:
    started = time.monotonic()
    # First the changes that would be lost.
    for queue in sorted(_queues, key=lambda queue: queue.survives):
        limit = DURABLE_SECONDS if queue.survives else EXIT_SECONDS
        queue.close_at_exit(max(started + limit - time.monotonic(), 0))


def _terminate(number: int, frame: FrameType | None) -> None:
    try:
        _deliver_all()
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _reset_after_fork() -> None:
    for queue in list(_queues):
        queue.reset_after_fork()


atexit.register(_deliver_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
