"""Changes on their way to a receiver: in order, in the background, kept until accepted.

One thread a queue sends one request at a time. A change that was not accepted waits, and
with it every later change of the same path, of what is above it and of what is below it,
while other paths go on; so nothing can overtake.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oh_jupyter.storage.webhook.changes import DeliveryReport, Update
from oh_jupyter.storage.webhook.dispatcher import Dispatcher, Send
from oh_jupyter.storage.webhook.outbox import Outbox
from oh_jupyter.storage.webhook.retry import RetryPolicy
from oh_jupyter.storage.webhook.shutdown import watch

__all__ = ["BatchPolicy", "DeliveryQueue"]

_log = logging.getLogger(__name__)
_LATE_SECONDS = 0.02
_REPLACED = 100
_MAX_PATH_LOCKS = 64


@dataclass(frozen=True)
class BatchPolicy:
    """When changes are sent, and how many together.

    Attributes:
        quiet: Seconds without a change after which the waiting ones are sent.
        latest: Seconds after the first change at which they are sent in any case.
        batch_bytes: Contents that make a batch full; 0 sends each change by itself.
    """

    quiet: float = 0.0
    latest: float = 0.0
    batch_bytes: int = 0


class DeliveryQueue:
    """The changes that wait for a receiver, and the thread that sends them.

    Args:
        send: Sends some changes in one request; raises if they were not accepted.
        batch_policy: When, and how many.
        outbox: Where they wait; one in a file survives the process.
        retry_policy: How patient it is with the receiver.
        max_bytes: Contents that may wait. Beyond it the oldest changes are dropped, those
            first that a later change of the same path makes pointless. None for 1 GiB in
            a file of its own, and 256 MiB in a temporary one.
        max_updates: Changes that may wait.

    Attributes:
        durable: Whether what waits survives the process.
        outbox: Where it waits.
    """

    def __init__(
        self,
        send: Send,
        batch_policy: BatchPolicy,
        *,
        outbox: Outbox | None = None,
        retry_policy: RetryPolicy | None = None,
        max_bytes: int | None = None,
        max_updates: int = 100_000,
    ) -> None:
        self.outbox = Outbox() if outbox is None else outbox
        self.durable = self.outbox.path is not None
        self._send = send
        self._batch_policy = batch_policy
        self._max_updates = max_updates
        self._retry_policy = retry_policy or RetryPolicy(durable=self.durable)
        # In a file there may be changes of days.
        self._max_bytes = max_bytes or (1 << 30 if self.durable else 1 << 28)
        self._reset()
        watch(self)
        if self.durable:
            self.outbox.sweep()
            if self.outbox.totals()[0]:
                self.look()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._stripes = [threading.Lock() for _ in range(_MAX_PATH_LOCKS)]
        self._thread: threading.Thread | None = None
        self._dispatcher = Dispatcher(
            self._send, self.outbox, self._retry_policy, self._batch_policy.batch_bytes
        )
        self._fresh: list[int] = []  # changes that no round has seen
        self._newest: dict[str, tuple[int, int]] = {}  # number and size of those, by key
        self._replaced: list[int] = []  # those that need not be sent
        self._bytes = 0
        self._number = 0  # of the last change
        self._first = self._last = 0.0
        self._asked = self._done = 0  # rounds that somebody waits for
        self._retired = self._disposed = False
        self._idle = False  # whether the thread has nothing to do but wait
        self._unchecked = [0, 0]  # changes and bytes since the limits were looked at

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child; what waits is the parent's to send."""
        self.outbox.reset_after_fork()
        self._reset()

    @contextlib.contextmanager
    def recorded(self, updates: Sequence[Update], key: str | None = None) -> Iterator[None]:
        """Hold while the store does some changes. They are sent if it does not raise.

        Args:
            updates: The changes.
            key: Their key; None if they are of many paths, such as all below a directory.
        """
        with contextlib.ExitStack() as held:
            for stripe in (
                self._stripes if key is None else [self._stripes[hash(key) % _MAX_PATH_LOCKS]]
            ):
                held.enter_context(stripe)
            numbers = self._add(updates)
            try:
                yield
            except Exception:
                self.outbox.remove(numbers)
                raise
            except BaseException:  # interrupted: the store may have done it already
                self._put(numbers, updates)
                raise
            self._put(numbers, updates)

    def _add(self, updates: Sequence[Update]) -> list[int]:
        import sqlite3

        numbers: list[int] = []
        try:
            for update in updates:
                try:
                    numbers.append(self.outbox.add(update))
                except sqlite3.OperationalError:  # full? what is done with may make room
                    self.outbox.tidy(everything=True)
                    numbers.append(self.outbox.add(update))
        except (sqlite3.Error, OSError) as error:
            # A full disk here is no reason to refuse the write.
            _log.warning("Changes are not reported, since they cannot be kept: %s", error)
            for update in updates[len(numbers) :]:
                self._dispatcher.lost(update, f"the outbox failed: {error}")
        return numbers

    def _put(self, numbers: list[int], updates: Sequence[Update]) -> None:
        with self._changed:
            self._last = time.monotonic()
            is_first = not self._fresh
            if is_first:
                self._first = self._last
            for number, update in zip(numbers, updates, strict=False):
                self._number = max(self._number, number)
                self._fresh.append(number)
                self._note(number, update)
            if (
                self._unchecked[0] > self._max_updates // 50
                or self._unchecked[1] > self._max_bytes // 50
            ):
                self._unchecked = [0, 0]
                self._dispatcher.evict(self._max_updates, self._max_bytes)
            # Once awake, the thread looks itself whether more has come.
            if is_first or 0 < self._batch_policy.batch_bytes <= self._bytes or self._retired:
                self._wake_up()
            self._let_go()

    def _let_go(self) -> None:
        """Let the thread have a turn, if it is due and nothing but the writer is in its way.

        A loop of short calls that release the interpreter's lock can keep another thread
        from it for seconds.
        """
        if self._idle and self._time_to_wait() == 0:
            late = (
                time.monotonic()
                - self._first
                - min(self._batch_policy.latest, self._batch_policy.quiet)
            )
            if late > _LATE_SECONDS:
                self._changed.wait(_LATE_SECONDS)

    def _note(self, number: int, update: Update) -> None:
        size = len(update.contents)
        self._unchecked[0] += 1
        self._unchecked[1] += size
        if not self._batch_policy.batch_bytes:
            return
        replaced, unsent = self._newest.get(update.key, (0, 0))
        self._newest[update.key] = (number, size)
        self._bytes += size - unsent
        if replaced:
            # Of a file that is written all the time, only the last state is of interest.
            self._replaced.append(replaced)
            if len(self._replaced) > _REPLACED:
                self.outbox.remove(self._replaced)
                self._replaced = []

    def look(self) -> None:
        """Look soon at what others have put into the outbox."""
        with self._changed:
            self._asked += 1
            self._wake_up()

    def flush(self, timeout: float | None = None) -> DeliveryReport:
        """Send what was recorded before now, and wait for the receiver's answer.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            What became of it.
        """
        with self._changed:
            target = self._number
            self._asked += 1
            asked = self._asked
            self._dispatcher.retry_now()
            self._wake_up()
            self._changed.wait_for(
                lambda: self._done >= asked and self._dispatcher.open_from > target, timeout
            )
            delivered, failed = self._dispatcher.results()
            return DeliveryReport(delivered, failed, self.outbox.totals()[0])

    def close(self, timeout: float) -> DeliveryReport:
        """Flush, and end the thread even if time runs out.

        Args:
            timeout: Seconds to wait at most. What waits then stays in the outbox, if that
                survives the process, and is dropped otherwise.

        Returns:
            What became of the changes.
        """
        report = self.flush(timeout)
        with self._changed:
            # Other processes, and the next start, have to know that it is complete.
            self.outbox.ready(self._take())
            if report.pending and not self.durable:
                _log.warning("%d changes were not delivered within %s s", report.pending, timeout)
                self.outbox.remove([change.number for change in self.outbox.waiting()])
            self._dispatcher.interrupt.set()
        self.retire()
        return report

    def shut(self, seconds: float) -> None:
        """Close, at exit.

        Args:
            seconds: How long it may take.
        """
        if self._thread is not None or self._fresh:
            self.close(seconds)
        if not self.durable:
            self.outbox.close()

    def retire(self, dispose: bool = False) -> None:
        """Let the thread send what is waiting, and then end.

        Args:
            dispose: Close the database then; nobody uses the queue any more.
        """
        with self._changed:
            self._retired = True
            self._disposed = dispose
            self._changed.notify_all()
            if self._thread is None and (dispose or self.durable):
                self.outbox.close()

    def _take(self) -> list[int]:
        fresh, self._fresh = self._fresh, []
        self._newest = {}
        self._replaced = []
        self._bytes = 0
        return fresh

    def _wake_up(self) -> None:
        self._retired = False
        self._dispatcher.interrupt.clear()
        self._changed.notify_all()
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="oh-webhook", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self._thread = None
            if self.durable:
                self.outbox.ready(self._take())
            else:
                _log.warning("A change came too late at exit to be delivered")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                while (wait := self._time_to_wait()) > 0:
                    if self._retired and (self.durable or wait == math.inf):
                        self._thread = None
                        if self._disposed or self.durable:
                            self.outbox.close()
                        return
                    self._changed.wait(None if wait == math.inf else wait)
                self._idle = False
                asked, fresh = self._asked, self._take()
                self._changed.notify_all()
            self._dispatcher.run(fresh)
            with self._changed:
                self._done = asked
                self._changed.notify_all()

    def _time_to_wait(self) -> float:
        """Seconds until there is something to do; infinite while nothing waits."""
        if self._asked > self._done:
            return 0
        now = time.time()
        wait = max(self._dispatcher.wake - now, 0)
        if self._fresh:
            due = min(
                self._last + self._batch_policy.quiet, self._first + self._batch_policy.latest
            )
            if self._retired or 0 < self._batch_policy.batch_bytes <= self._bytes:
                due = 0
            wait = min(
                wait,
                max(
                    due - time.monotonic(),
                    max(self._dispatcher.not_before, self._dispatcher.rest) - now,
                    0,
                ),
            )
        return wait
