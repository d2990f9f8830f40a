"""Changes on their way to a receiver: in order, in the background, kept until accepted."""

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
    """When changes are sent, and how many together; 0 ``batch_bytes`` is one by one."""

    quiet_seconds: float = 0.0
    max_wait_seconds: float = 0.0
    batch_bytes: int = 0


class DeliveryQueue:
    """The changes that wait for a receiver, and the thread that dispatches them.

    Beyond 1 GiB in a file, else 256 MiB, the oldest are dropped, first
    those that a later change of their path makes pointless.
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
        # In a file there may be changes of days.
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
        self._newest: dict[str, tuple[int, int]] = {}  # number and size of those, by key
        self._replaced: list[int] = []  # those that need not be sent
        self._fresh_bytes = 0
        self._first = self._last = 0.0
        self._looks_requested = self._looks_done = 0
        self._stopping = self._disposed = False
        self._idle = False  # whether the thread has nothing to do but wait
        self._unchecked = [0, 0]  # changes and bytes since the limits were looked at

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child; what waits is the parent's to send."""
        self.outbox.reset_after_fork()
        self._reset()

    @contextlib.contextmanager
    def recorded(self, changes: Sequence[Change], key: str | None = None) -> Iterator[None]:
        """Hold while the store does some changes, which are sent unless it raises.

        Changes of one path follow each other, so that the last is sent last; None waits for all
        paths.
        """
        index = hash(key) % _PATH_LOCKS
        with contextlib.ExitStack() as held:
            for lock in self._path_locks if key is None else [self._path_locks[index]]:
                held.enter_context(lock)
            numbers = self._record(changes)
            try:
                yield
            except Exception:
                self.outbox.remove(numbers)
                raise
            except BaseException:  # interrupted: the store may have done it already
                self._enqueue(numbers, changes)
                raise
            self._enqueue(numbers, changes)

    def _record(self, changes: Sequence[Change]) -> list[int]:
        numbers: list[int] = []
        for change in changes:
            try:
                numbers.append(self.outbox.add(change))
            except OutboxFullError as error:
                # A full disk here is no reason to refuse the write.
                _log.warning("A change is not reported, since it cannot be kept: %s", error)
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
            # Once awake, the thread looks itself whether more has come.
            if is_first or self._is_full or self._stopping:
                self._wake_up()
            self._yield_to_thread()

    @property
    def _is_full(self) -> bool:
        return 0 < self._batch_policy.batch_bytes <= self._fresh_bytes

    def _yield_to_thread(self) -> None:
        """Let the thread run, which a loop of short writes can keep from it for seconds."""
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
            # Of a file that is written all the time, only the last state is of interest.
            self._replaced.append(replaced)
            if len(self._replaced) > _MAX_REPLACED:
                self.outbox.remove(self._replaced)
                self._replaced = []

    def wake(self) -> None:
        """Look soon at what others have put into the outbox."""
        with self._changed:
            self._looks_requested += 1
            self._wake_up()

    def flush(self, timeout_seconds: float | None = None) -> DeliveryReport:
        """Send what was recorded before now, and wait for the receiver's answer."""
        with self._changed:
            target = self.outbox.last_number()
            self._looks_requested += 1
            requested = self._looks_requested
            self._dispatcher.retry_now()
            self._wake_up()
        self._wait_for(
            lambda: self._looks_done >= requested and self._dispatcher.open_from > target,
            timeout_seconds,
        )
        with self._changed:
            # Or it is sent again, by another process, if this one ends now.
            self._dispatcher.write_accepted()
            delivered, failed = self._dispatcher.counter.take()
            return DeliveryReport(delivered, failed, self._dispatcher.count_pending())

    def _wait_for(self, is_done: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait for the thread, or do its work here if none can be started."""
        with self._changed:
            if self._thread is not None:
                self._changed.wait_for(is_done, timeout_seconds)
                return
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while not is_done() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, self._time_to_wait(), _MAX_SLEEP_SECONDS))
            self._work()

    def close(self, timeout_seconds: float) -> DeliveryReport:
        """Flush, and end the thread; without an outbox, what still waits is dropped."""
        report = self.flush(timeout_seconds)
        with self._changed:
            self._mark_fresh_done()
            if report.pending and not self.durable:
                _log.warning(
                    "%d changes were not delivered within %s s", report.pending, timeout_seconds
                )
                self.outbox.remove([change.number for change in self.outbox.pending()])
            self._dispatcher.interrupt()
        self.stop()
        return report

    def close_at_exit(self, timeout_seconds: float) -> None:
        """Close, as the process ends."""
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
        """Whether what waits survives the process."""
        return self.durable and not self.outbox.undurable

    def stop(self, dispose: bool = False) -> None:
        """Let the thread send what is waiting, and then end; with ``dispose``, for good."""
        with self._changed:
            self._stopping = True
            self._disposed = dispose
            self._changed.notify_all()
            if self._thread is None and (dispose or self.durable):
                self.outbox.close()

    def _mark_fresh_done(self) -> None:
        """Let other processes, and the next start, know that these changes are complete."""
        import sqlite3

        with contextlib.suppress(sqlite3.Error):  # or they find out when this process is gone
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
        self._thread = try_start_thread(self._run, "oh-webhook")
        if self._thread is not None:
            self._dispatcher.start()
        elif self.durable:
            self._mark_fresh_done()
        elif self._is_closed_at_exit:
            _log.warning("A change came too late at exit to be delivered")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                while (wait := self._time_to_wait()) > 0 and not self._dispatcher.has_answers:
                    if self._is_over(wait):
                        self._thread = None
                        self._dispatcher.close()
                        if self._disposed or self.durable:
                            self.outbox.close()
                        return
                    self._changed.wait(None if wait == math.inf else wait)
                self._idle = False
            self._work()

    def _work(self) -> None:
        """Do what is to be done now: take answers, or make the requests that are due."""
        with self._changed:
            is_due = self._time_to_wait() <= 0
            requested = self._looks_requested
            fresh = self._take_fresh() if is_due else []
        if is_due:
            self._dispatcher.look(fresh)
        else:
            self._dispatcher.proceed()
        with self._changed:
            if is_due:
                self._looks_done = requested
            self._changed.notify_all()

    def _is_over(self, wait: float) -> bool:
        """Whether the thread can end: it shall, and what waits is sent, or kept elsewhere."""
        is_done = self.durable or wait == math.inf
        return self._stopping and is_done and not self._dispatcher.is_sending

    def _time_to_wait(self) -> float:
        """Seconds until there is something to do; infinite while nothing waits."""
        if self._looks_requested > self._looks_done:
            return 0
        now = time.time()
        wait = max(self._dispatcher.next_look - now, 0)
        if self._fresh:
            policy = self._batch_policy
            due = min(self._last + policy.quiet_seconds, self._first + policy.max_wait_seconds)
            if self._stopping or self._is_full:
                due = 0
            blocked = self._dispatcher.fresh_not_before() - now
            wait = min(wait, max(due - time.monotonic(), blocked, 0))
        return wait


EXIT_SECONDS = 10.0
"""How long all that is not on disk may take together."""

DURABLE_SECONDS = 5.0
"""How long what is on disk may take; the next start sends the rest."""


_queues: weakref.WeakSet[DeliveryQueue] = weakref.WeakSet()


def _close_at_exit(queue: DeliveryQueue) -> None:
    """Send what waits when the process ends: in time, by SIGTERM only where nobody handles it."""
    _queues.add(queue)
    if queue.durable or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _deliver_all() -> None:
    started = time.monotonic()
    # What would be lost comes first.
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
    # The parent delivers what was waiting; the threads and their locks stayed there.
    for queue in list(_queues):
        queue.reset_after_fork()


atexit.register(_deliver_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
