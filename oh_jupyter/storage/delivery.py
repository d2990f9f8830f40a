"""Changes on their way to a receiver: in order, in the background, in bounded memory.

One thread a queue sends one request at a time, so a change that is tried again can never
overtake, or be overtaken by, another change of the same path.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oh_jupyter.storage.changes import DeliveryReport, FailedDelivery, RefusedError, Update

__all__ = ["DeliveryQueue", "Pace"]

_log = logging.getLogger(__name__)
_EXIT_SECONDS = 10.0
_LONGEST_PAUSE = 30.0
_REMEMBERED_FAILURES = 1000
_STRIPES = 64


@dataclass(frozen=True)
class Pace:
    """When changes are sent, and how many together.

    Attributes:
        quiet: Seconds without a change after which the waiting ones are sent.
        latest: Seconds after the first change at which they are sent in any case.
        batch_bytes: Contents that make a batch full; 0 sends each change by itself.
        supersede: Whether the last change of a path replaces those that still wait.
    """

    quiet: float = 0.0
    latest: float = 0.0
    batch_bytes: int = 0
    supersede: bool = False


class DeliveryQueue:
    """The changes that wait for a receiver, and the thread that sends them.

    Args:
        send: Sends some changes in one request; raises if they were not accepted.
        pace: When, and how many.
        tries: How often a request is made in all.
        pause: Seconds between two tries.
        max_bytes: Contents that may wait. Beyond it the oldest changes are dropped, those
            first that a later change of the same path makes pointless.
        max_updates: Changes that may wait.
    """

    def __init__(
        self,
        send: Callable[[list[Update]], None],
        pace: Pace,
        *,
        tries: int = 3,
        pause: float = 1.0,
        max_bytes: int = 50_000_000,
        max_updates: int = 10_000,
    ) -> None:
        self._send = send
        self._pace = pace
        self._tries = tries
        self._pause = pause
        self._max_bytes = max_bytes
        self._max_updates = max_updates
        self._reset()
        _live.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]
        self._interrupt = threading.Event()
        self._thread: threading.Thread | None = None
        self._waiting: dict[object, tuple[int, Update]] = {}
        self._bytes = 0
        self._number = 0  # of the last change
        self._sending: tuple[int, int] | None = None  # number of the first, and how many
        self._flush_to = 0
        self._first = self._last = 0.0
        self._retired = False
        self._delivered = 0
        self._dropping = False
        self._failed: deque[FailedDelivery] = deque(maxlen=_REMEMBERED_FAILURES)

    @contextlib.contextmanager
    def order(self, key: str | None) -> Iterator[None]:
        """Hold while changing a path and putting the change in, so that both agree.

        Args:
            key: The path's key, or None for all paths, such as those below a directory.
        """
        stripes = self._stripes if key is None else [self._stripes[hash(key) % _STRIPES]]
        with contextlib.ExitStack() as held:
            for stripe in stripes:
                held.enter_context(stripe)
            yield

    def put(self, update: Update) -> None:
        """Add a change. It never waits for the receiver.

        Args:
            update: The change.
        """
        with self._changed:
            self._number += 1
            self._last = time.monotonic()
            if not self._waiting:
                self._first = self._last
            place: object = update.key if self._pace.supersede else self._number
            self._remove(place)
            self._waiting[place] = (self._number, update)
            self._bytes += len(update.contents)
            if self._bytes > self._max_bytes or len(self._waiting) > self._max_updates:
                self._shed()
            if self._thread is None:
                self._start()
            else:
                self._changed.notify_all()

    def flush(self, timeout: float | None = None) -> DeliveryReport:
        """Send what was put in before now, and wait for the receiver's answer.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            What became of it.
        """
        with self._changed:
            target = self._flush_to = self._number
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._settled(target), timeout)
            report = DeliveryReport(
                self._delivered,
                tuple(self._failed),
                len(self._waiting) + (self._sending[1] if self._sending else 0),
            )
            self._delivered = 0
            self._failed.clear()
            return report

    def close(self, timeout: float) -> DeliveryReport:
        """Flush, and end the thread even if time runs out.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            What became of the changes.
        """
        report = self.flush(timeout)
        if report.pending:
            _log.warning("%d changes were not delivered within %s s", report.pending, timeout)
            with self._changed:
                self._waiting.clear()
                self._bytes = 0
            self._interrupt.set()
        self.retire()
        return report

    def retire(self) -> None:
        """Let the thread send what is waiting, and then end."""
        with self._changed:
            self._retired = True
            self._changed.notify_all()

    def _settled(self, target: int) -> bool:
        if self._sending:
            return self._sending[0] > target
        return not self._waiting or self._oldest() > target

    def _oldest(self) -> int:
        return next(iter(self._waiting.values()))[0]

    def _remove(self, place: object) -> None:
        gone = self._waiting.pop(place, None)
        if gone:
            self._bytes -= len(gone[1].contents)

    def _shed(self) -> None:
        """Drop what is pointless, then the oldest, until there is room again."""
        last = {update.key: place for place, (_, update) in self._waiting.items()}
        for place in set(self._waiting) - set(last.values()):
            self._remove(place)
        dropped = 0
        # A tenth more than needed, so that not each further change has to look again.
        while len(self._waiting) > 1 and (
            self._bytes > 0.9 * self._max_bytes or len(self._waiting) > 0.9 * self._max_updates
        ):
            place, (_, update) = next(iter(self._waiting.items()))
            self._remove(place)
            self._failed.append(
                FailedDelivery(update.method, update.path, "dropped: too much was waiting")
            )
            dropped += 1
        if dropped and not self._dropping:
            _log.warning("The receiver is too slow or away: the oldest changes are dropped")
        self._dropping = bool(dropped)

    def _start(self) -> None:
        self._retired = False
        self._interrupt.clear()
        self._thread = threading.Thread(target=self._run, name="oh-webhook", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self._thread = None
            _log.warning("A change came too late at exit to be delivered")

    def _run(self) -> None:
        while True:
            with self._changed:
                while (wait := self._time_to_wait()) != 0:
                    if self._retired and not self._waiting:
                        self._thread = None
                        return
                    self._changed.wait(wait)
                updates = self._take()
            reason = self._deliver(updates)
            with self._changed:
                self._sending = None
                if reason is None:
                    self._delivered += len(updates)
                else:
                    self._failed.extend(FailedDelivery(u.method, u.path, reason) for u in updates)
                self._changed.notify_all()

    def _time_to_wait(self) -> float | None:
        """Seconds until the next request is due; None while nothing waits."""
        if not self._waiting:
            return None
        full = self._bytes >= self._pace.batch_bytes
        if full or self._retired or self._oldest() <= self._flush_to:
            return 0
        due = min(self._last + self._pace.quiet, self._first + self._pace.latest)
        return max(due - time.monotonic(), 0)

    def _take(self) -> list[Update]:
        """Take the changes of the next request, oldest first."""
        self._sending = (self._oldest(), 0)
        updates: list[Update] = []
        size = 0
        while self._waiting and not (updates and size >= self._pace.batch_bytes):
            place, (_, update) = next(iter(self._waiting.items()))
            self._remove(place)
            updates.append(update)
            size += len(update.contents)
        self._sending = (self._sending[0], len(updates))
        self._first = self._last
        return updates

    def _deliver(self, updates: list[Update]) -> str | None:
        """Send a request until it is accepted. Returns why it was given up, or None."""
        reason = ""
        for attempt in range(self._tries):
            pause = self._pause
            try:
                self._send(updates)
                return None
            except RefusedError as error:
                reason = str(error)
                if error.permanent:
                    break
                pause = max(pause, min(error.retry_after or 0, _LONGEST_PAUSE))
            except Exception as error:
                # The text of a client's error may quote the URL, and with it a password.
                reason = f"no answer ({type(error).__name__})"
            if attempt + 1 == self._tries or self._interrupt.wait(pause):
                break
        _log.warning(
            "A change was not accepted by the receiver and is given up: %s %s%s: %s",
            updates[0].method,
            updates[0].path,
            f" and {len(updates) - 1} more" if len(updates) > 1 else "",
            reason,
        )
        return reason


_live: weakref.WeakSet[DeliveryQueue] = weakref.WeakSet()


def _deliver_at_exit() -> None:
    deadline = time.monotonic() + _EXIT_SECONDS
    for queue in list(_live):
        queue.close(max(deadline - time.monotonic(), 0))


def _forget_after_fork() -> None:
    # The parent delivers what was waiting; the thread and its locks stayed there.
    for queue in list(_live):
        queue._reset()


atexit.register(_deliver_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
