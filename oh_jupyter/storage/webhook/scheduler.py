"""Schedule of a webhook's requests: pure functions of the pending changes and the time.

No change overtakes an earlier one of the same path, of a path above it or of a path below it.
Independent paths do not wait for each other.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oh_jupyter.storage.paths import parent
from oh_jupyter.storage.webhook.changes import Failure, PendingChange, Request

MAX_PAUSE_SECONDS = 120.0
"""Longest pause between two attempts, even if the receiver asks for a longer one."""

PROBE_SECONDS = 10.0
"""Longest time until a new change is tried, even while earlier ones pause."""

MAX_CHANGES = 100_000
"""Number of pending changes beyond which the oldest are dropped."""

_RECHECK_SECONDS = 1.0

_jitter = random.Random()
"""Its own generator: deliveries must not change the sequence that a person has seeded."""


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
        return min(pause, MAX_PAUSE_SECONDS / 1.2) * _jitter.uniform(0.8, 1.2)


class Pause(NamedTuple):
    """Pause of all requests to a receiver."""

    until: float = 0.0  # seconds since the epoch
    requested: bool = False  # by the receiver
    outages: int = 0  # consecutive failed rounds without a response

    def shorten(self, now: float, until: float) -> Pause:
        """Return a pause that ends at a time at the latest, unless the receiver requested it."""
        if self.requested and self.until > now:
            return self
        return self._replace(until=min(self.until, until), requested=False)


class PathBarrier:
    """Paths that block changes of themselves, of the paths above and of those below."""

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
        """Return whether the path itself, one above it or one below it blocks it."""
        return key in self._keys or self.blocks_around(key)

    def blocks_around(self, key: str) -> bool:
        """Return whether a path above or below this one blocks it."""
        if key in self._ancestors:
            return True
        while key:
            key = parent(key)
            if key in self._keys:
                return True
        return False


@dataclass
class Plan:
    """Requests to send now, and the time of the next plan.

    Attributes:
        lanes: Requests of independent paths, by their first change. Those of one lane are sent
            one after the other, behind the request in flight of the same path.
        pause: The receiver's pause, which new changes and ``retry_now`` shorten.
        wake_at: Time of the next plan in seconds since the epoch; infinite if nothing waits.
        waits_for_response: Whether a change waits for a request in flight.
        waiting_from: Number of the first change that waits for a response or for a quick try.
        replaced: Changes that later ones replace.
        dropped: Changes beyond the limits.
        rescheduled: Changes with a new due time.
    """

    lanes: list[list[Request]] = field(default_factory=list)
    pause: Pause = Pause()  # noqa: RUF009  immutable
    wake_at: float = math.inf
    waits_for_response: bool = False
    waiting_from: float = math.inf
    replaced: list[PendingChange] = field(default_factory=list)
    dropped: list[PendingChange] = field(default_factory=list)
    rescheduled: list[PendingChange] = field(default_factory=list)


def plan(
    pending: Sequence[PendingChange],
    now: float,
    policy: RetryPolicy,
    *,
    pause: Pause = Pause(),  # noqa: B008  immutable
    in_flight: Collection[Request] = (),
    fresh: Collection[int] = (),
    retry_now: bool = False,
    idle_seconds: float = 0.0,
    batch_bytes: int = 0,
    max_bytes: float = math.inf,
) -> Plan:
    """Decide what to send.

    Args:
        pending: All pending changes, oldest first.
        now: The time in seconds since the epoch.
        policy: The retry policy.
        pause: The current pause of the receiver.
        in_flight: Requests without a response.
        fresh: Numbers of changes that are new since the last plan.
        retry_now: Skip growing pauses.
        idle_seconds: Time since the last request.
        batch_bytes: Size of a full batch; 0 for one change per request.
        max_bytes: Size of all contents beyond which changes are dropped.
    """
    if retry_now:
        pause = pause.shorten(now, 0.0)
    elif fresh:
        pause = pause.shorten(now, now - idle_seconds + PROBE_SECONDS)
    sending = {change.number for request in in_flight for change in request.changes}
    waiting = [change for change in pending if change.number not in sending]
    planner = _Planner(now, policy, pause, in_flight, retry_now, batch_bytes > 0)
    waiting = planner.drop_excess(waiting, len(pending), sum(c.size for c in pending), max_bytes)
    waiting = planner.hasten(waiting, fresh)
    if batch_bytes:
        planner.plan_batches(waiting, batch_bytes)
    else:
        for change in planner.merge_postponed(waiting):
            planner.add(Request(change.id, (change,)))
    lanes = filter(None, planner.lanes.values())
    planner.plan.lanes = sorted(lanes, key=lambda lane: lane[0].changes[0].number)
    return planner.plan


class _Planner:
    """Fills a plan: goes through the waiting changes, oldest first."""

    def __init__(
        self,
        now: float,
        policy: RetryPolicy,
        pause: Pause,
        in_flight: Collection[Request],
        retry_now: bool,
        is_batched: bool,
    ) -> None:
        self.plan = Plan(pause=pause)
        self._now = now
        self._policy = policy
        self._pause = pause
        self._retry_now = retry_now
        self._is_batched = is_batched
        self._postponed = PathBarrier()
        self._sending = PathBarrier(c.key for request in in_flight for c in request.changes)
        self.lanes: dict[str, list[Request]] = {r.changes[0].key: [] for r in in_flight}

    def drop_excess(
        self, waiting: Sequence[PendingChange], count: int, size: float, max_bytes: float
    ) -> list[PendingChange]:
        """Drop changes beyond the limits: replaced ones, then the oldest; return the others."""
        if count <= MAX_CHANGES and size <= max_bytes:
            return list(waiting)
        last = {change.key: change.number for change in waiting if change.applied}
        rest = []
        for change in waiting:
            if change.applied and not change.batch and change.number < last[change.key]:
                self.plan.replaced.append(change)
                count, size = count - 1, size - change.size
            else:
                rest.append(change)
        # A tenth more than needed, so that the next changes do not exceed the limits again.
        for change in rest[:-1]:
            if count <= 0.9 * MAX_CHANGES and size <= 0.9 * max_bytes:
                break
            self.plan.dropped.append(change._replace(reason="dropped: too much was waiting"))
            count, size = count - 1, size - change.size
        return rest[len(self.plan.dropped) :]

    def hasten(self, waiting: list[PendingChange], fresh: Collection[int]) -> list[PendingChange]:
        """Shorten the growing pauses of paths that have a new change."""
        if not fresh or (self._pause.requested and self._pause.until > self._now):
            return waiting
        keys = {change.key for change in waiting if change.number in fresh}
        batches = {change.batch for change in waiting if change.key in keys and change.batch}
        soon = self._now + PROBE_SECONDS
        hastened = []
        for change in waiting:
            is_concerned = change.key in keys or change.batch in batches
            if is_concerned and change.rounds and change.due > soon:
                change = change._replace(due=soon)
                self.plan.rescheduled.append(change)
            hastened.append(change)
        return hastened

    def merge_postponed(self, waiting: Sequence[PendingChange]) -> Iterator[PendingChange]:
        """Keep only the last change of postponed paths, with the schedule of the first."""
        postponed: dict[str, PendingChange] = {}
        last: dict[str, PendingChange] = {}
        for change in waiting:
            if change.applied:
                last[change.key] = change
                if change.rounds:
                    postponed.setdefault(change.key, change)
        for change in waiting:
            first = postponed.get(change.key, change)
            if not change.applied or first is last[change.key] or change.key not in postponed:
                yield change
            elif change is not last[change.key]:
                self.plan.replaced.append(change)
            else:
                change = change._replace(
                    rounds=first.rounds, due=first.due, attempts=first.attempts, reason=first.reason
                )
                self.plan.rescheduled.append(change)
                yield change

    def plan_batches(self, waiting: Sequence[PendingChange], batch_bytes: int) -> None:
        """Plan tried batches again, and new ones with the last change of each path."""
        tried: dict[str, list[PendingChange]] = {}
        for change in waiting:
            if change.batch:
                tried.setdefault(change.batch, []).append(change)
        for id, changes in tried.items():
            self.add(Request(id, tuple(changes)))
        ready: dict[str, PendingChange] = {}
        later: list[PendingChange] = []
        barrier = PathBarrier()  # paths of the later ones, which block only their successors
        for change in waiting:
            key = change.key
            if change.batch:
                continue
            if not change.applied or any(
                key in each for each in (barrier, self._postponed, self._sending)
            ):
                later.append(change)
                barrier.add(key)
            else:
                if key in ready:
                    self.plan.replaced.append(ready.pop(key))
                ready[key] = change
        for batch in _batches(ready.values(), batch_bytes):
            self.add(Request(batch[0].id, tuple(batch)))
        for change in later:
            self.add(Request(change.id, (change,)))

    def add(self, request: Request) -> None:
        """Plan or postpone a request."""
        if not self._is_planned(request):
            for change in request.changes:
                self._postponed.add(change.key)

    def _is_planned(self, request: Request) -> bool:
        changes = request.changes
        if not all(change.applied for change in changes):
            if not all(change.ours for change in changes):
                # The death of the other process would not wake this one.
                self._wake(self._now + _RECHECK_SECONDS)
            return False
        if any(change.key in self._postponed for change in changes):
            return False
        if any(change.key in self._sending for change in changes):
            return self._follow(request)
        is_open = not self._policy.durable or any(change.tries for change in changes)
        skips_pause = self._retry_now and not any(change.tries for change in changes)
        due = 0.0 if skips_pause else max(change.due for change in changes)
        if max(due, self._pause.until) > self._now:
            self._wake(max(due, self._pause.until))
            if is_open:
                self._wait(request)
            return False
        for change in changes:
            self._sending.add(change.key)
        self.lanes[changes[0].key] = [request]
        return True

    def _follow(self, request: Request) -> bool:
        """Add a request to the lane of its path, if nothing else blocks it."""
        key = request.changes[0].key
        if self._is_batched or self._sending.blocks_around(key):
            self.plan.waits_for_response = True
            self._wait(request)
            return False
        self.lanes[key].append(request)
        return True

    def _wake(self, at: float) -> None:
        self.plan.wake_at = min(self.plan.wake_at, at)

    def _wait(self, request: Request) -> None:
        self.plan.waiting_from = min(self.plan.waiting_from, request.changes[0].number)


def _batches(changes: Iterable[PendingChange], batch_bytes: int) -> Iterator[list[PendingChange]]:
    batch: list[PendingChange] = []
    size = 0
    for change in changes:
        batch.append(change)
        size += change.size
        if size >= batch_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Retry(NamedTuple):
    """Decision after a failed request: changes with new due times, and the receiver's pause."""

    changes: list[PendingChange]
    pause: Pause
    is_final: bool


def after_failure(
    changes: Sequence[PendingChange],
    failure: Failure,
    pause: Pause,
    now: float,
    policy: RetryPolicy,
) -> Retry:
    """Count a failure of a request, and decide when its changes are due again."""
    first = changes[0]
    is_exhausted = first.tries + 1 >= policy.tries
    is_too_old = not policy.durable or now - first.recorded > policy.give_up_seconds
    is_final = failure.permanent or (is_exhausted and is_too_old)
    rounds = first.rounds + is_exhausted
    seconds = policy.backoff(rounds) if is_exhausted else policy.pause_seconds
    due = now + max(seconds, min(failure.retry_after or 0, MAX_PAUSE_SECONDS))
    failed = [
        change._replace(
            tries=0 if is_exhausted else change.tries + 1,
            attempts=change.attempts + 1,
            rounds=rounds,
            due=due,
            reason=failure.reason,
        )
        for change in changes
    ]
    if failure.retry_after is not None and not is_final:
        pause = Pause(due, True, pause.outages)
    elif policy.durable and not failure.answered and not is_final:
        # The receiver is unreachable, so all changes pause, not only these.
        outages = pause.outages + (is_exhausted and pause.until <= now)
        seconds = policy.backoff(max(outages, 1)) if is_exhausted else seconds
        pause = Pause(now + seconds, False, outages)
    return Retry(failed, pause, is_final)
