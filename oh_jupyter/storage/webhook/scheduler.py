"""Schedule of a webhook's requests, as pure functions of the pending changes and the time.

No change overtakes an earlier one of the same path, of a path above it or of a path below it.
Independent paths do not wait for each other.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from oh_jupyter.storage.paths import parent
from oh_jupyter.storage.webhook.changes import Failure, PendingChange, Request

MAX_PAUSE_SECONDS = 120.0
"""Longest pause between two attempts, even if the receiver asks for a longer one."""

PROBE_SECONDS = 10.0
"""Longest time until a new change is tried, even while earlier ones pause."""

_RECHECK_SECONDS = 1.0


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


@dataclass(frozen=True)
class Plan:
    """Requests to send now, and the time of the next plan.

    Attributes:
        lanes: Requests of independent paths, by their first change. Those of one lane are sent
            one after the other, behind the request in flight of the same path.
        wake_at: Time of the next plan in seconds since the epoch; infinite if nothing waits.
        waits_for_response: Whether a change waits for a request in flight.
        waiting_from: Number of the first change that waits for a response or for a quick try.
        postponed: Number of changes that are not sent now.
        replaced: Numbers of changes that later ones replace.
        rescheduled: Changes with a new due time.
    """

    lanes: tuple[list[Request], ...] = ()
    wake_at: float = math.inf
    waits_for_response: bool = False
    waiting_from: float = math.inf
    postponed: int = 0
    replaced: tuple[int, ...] = ()
    rescheduled: tuple[PendingChange, ...] = ()


def plan(
    pending: Sequence[PendingChange],
    now: float,
    policy: RetryPolicy,
    *,
    pause: Pause = Pause(),  # noqa: B008  immutable
    in_flight: Collection[Request] = (),
    fresh: Collection[int] = (),
    retry_now: bool = False,
    batch_bytes: int = 0,
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
        batch_bytes: Size of a full batch; 0 for one change per request.
    """
    sending = {change.number for request in in_flight for change in request.changes}
    waiting = [change for change in pending if change.number not in sending]
    hastened = {} if pause.requested and pause.until > now else _hasten(pending, fresh, now)
    waiting = [hastened.get(change.number, change) for change in waiting]
    planner = _Planner(now, policy, pause.until, in_flight, retry_now, is_batched=batch_bytes > 0)
    if batch_bytes:
        replaced = _plan_batches(planner, waiting, batch_bytes)
    else:
        waiting, replaced, inherited = _merge_postponed(waiting)
        hastened.update(inherited)
        for change in waiting:
            planner.add(Request(change.id, (change,)))
    return replace(
        planner.plan(),
        replaced=tuple(replaced),
        rescheduled=tuple(c for c in hastened.values() if c.number not in replaced),
    )


def _hasten(
    pending: Sequence[PendingChange], fresh: Collection[int], now: float
) -> dict[int, PendingChange]:
    """Shorten the growing pauses of paths that have a new change."""
    if not fresh:
        return {}
    keys = {change.key for change in pending if change.number in fresh}
    batches = {change.batch for change in pending if change.key in keys and change.batch}
    soon = now + PROBE_SECONDS
    return {
        change.number: change._replace(due=soon)
        for change in pending
        if change.rounds and change.due > soon and (change.key in keys or change.batch in batches)
    }


def _merge_postponed(
    waiting: Sequence[PendingChange],
) -> tuple[list[PendingChange], set[int], dict[int, PendingChange]]:
    """Keep only the last change of postponed paths, with the schedule of the first.

    Returns:
        The remaining changes, the numbers of the others, and the changed ones.
    """
    postponed: dict[str, PendingChange] = {}
    last: dict[str, PendingChange] = {}
    for change in waiting:
        if change.applied:
            last[change.key] = change
            if change.rounds:
                postponed.setdefault(change.key, change)
    inherited = {}
    for key, first in postponed.items():
        if first is not last[key]:
            inherited[last[key].number] = last[key]._replace(
                rounds=first.rounds, due=first.due, attempts=first.attempts, reason=first.reason
            )
    replaced = {
        change.number
        for change in waiting
        if change.applied and change.key in postponed and change is not last[change.key]
    }
    remaining = [inherited.get(c.number, c) for c in waiting if c.number not in replaced]
    return remaining, replaced, inherited


def _plan_batches(
    planner: _Planner, waiting: Sequence[PendingChange], batch_bytes: int
) -> set[int]:
    """Plan tried batches again, and new ones with the last change of each path.

    Returns:
        Numbers of the changes that later ones replace.
    """
    tried: dict[str, list[PendingChange]] = {}
    for change in waiting:
        if change.batch:
            tried.setdefault(change.batch, []).append(change)
    for id, changes in tried.items():
        planner.add(Request(id, tuple(changes)))
    ready: dict[str, PendingChange] = {}
    later: list[PendingChange] = []
    replaced: set[int] = set()
    barrier = PathBarrier()  # paths of the later ones, which block only their successors
    for change in waiting:
        if change.batch:
            continue
        if not change.applied or change.key in barrier or planner.blocks(change.key):
            later.append(change)
            barrier.add(change.key)
        else:
            if change.key in ready:
                replaced.add(ready.pop(change.key).number)
            ready[change.key] = change
    for batch in _batches(ready.values(), batch_bytes):
        planner.add(Request(batch[0].id, tuple(batch)))
    for change in later:
        planner.add(Request(change.id, (change,)))
    return replaced


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


class _Planner:
    """Goes through requests, oldest first, and decides which are sent."""

    def __init__(
        self,
        now: float,
        policy: RetryPolicy,
        paused_until: float,
        in_flight: Collection[Request],
        retry_now: bool,
        is_batched: bool,
    ) -> None:
        self._now = now
        self._policy = policy
        self._paused_until = paused_until
        self._retry_now = retry_now
        self._sending = PathBarrier(c.key for request in in_flight for c in request.changes)
        self._is_batched = is_batched
        self._lanes: dict[str, list[Request]] = {r.changes[0].key: [] for r in in_flight}
        self._postponed = PathBarrier()
        self._postponed_count = 0
        self._waits_for_response = False
        self._wake_at = self._waiting_from = math.inf

    def blocks(self, key: str) -> bool:
        """Return whether a postponed or planned request blocks a path."""
        return key in self._postponed or key in self._sending

    def add(self, request: Request) -> None:
        """Plan or postpone a request."""
        if not self._is_planned(request):
            self._postponed_count += len(request.changes)
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
        due = max(change.due for change in changes)
        if self._retry_now and not any(change.tries for change in changes):
            due = 0.0
        due = max(due, self._paused_until)
        if due > self._now:
            self._wake(due)
            if not self._policy.durable or any(change.tries for change in changes):
                self._wait(request)
            return False
        for change in changes:
            self._sending.add(change.key)
        self._lanes[changes[0].key] = [request]
        return True

    def _follow(self, request: Request) -> bool:
        """Add a request to the lane of its path, if nothing else blocks it."""
        key = request.changes[0].key
        if self._is_batched or self._sending.blocks_around(key):
            self._waits_for_response = True
            self._wait(request)
            return False
        self._lanes[key].append(request)
        return True

    def _wake(self, at: float) -> None:
        self._wake_at = min(self._wake_at, at)

    def _wait(self, request: Request) -> None:
        self._waiting_from = min(self._waiting_from, first_number(request))

    def plan(self) -> Plan:
        """Return the decisions."""
        lanes = sorted(filter(None, self._lanes.values()), key=lambda lane: first_number(lane[0]))
        return Plan(
            tuple(lanes),
            self._wake_at,
            self._waits_for_response,
            self._waiting_from,
            self._postponed_count,
        )


def first_number(request: Request) -> int:
    """Return the number of the oldest change of a request."""
    return min(change.number for change in request.changes)


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
    seconds = policy.backoff(first.rounds + 1) if is_exhausted else policy.pause_seconds
    due = now + max(seconds, min(failure.retry_after or 0, MAX_PAUSE_SECONDS))
    failed = [
        change._replace(
            tries=0 if is_exhausted else change.tries + 1,
            attempts=change.attempts + 1,
            rounds=first.rounds + is_exhausted,
            due=due,
            reason=failure.reason,
        )
        for change in changes
    ]
    if is_final:
        pass
    elif failure.retry_after is not None:
        pause = Pause(due, True, pause.outages)
    elif policy.durable and not failure.answered:
        # The receiver is unreachable, so all changes pause, not only these.
        outages = pause.outages + (is_exhausted and pause.until <= now)
        if is_exhausted:
            seconds = policy.backoff(max(outages, 1))
        pause = Pause(now + seconds, False, outages)
    return Retry(failed, pause, is_final)


def excess(
    waiting: Sequence[PendingChange], count: int, size: int, max_changes: int, max_bytes: int
) -> tuple[list[PendingChange], list[PendingChange]]:
    """Return the changes to drop beyond the limits: replaced ones, then the oldest.

    Args:
        waiting: The changes that may be dropped, oldest first.
        count: Number of all pending changes.
        size: Size of their contents.
        max_changes: Maximum number.
        max_bytes: Maximum size.
    """
    last = {change.key: change.number for change in waiting}
    replaced = [c for c in waiting if c.number != last[c.key] and not c.batch]
    rest = [c for c in waiting if c.number == last[c.key] or c.batch]
    count -= len(replaced)
    size -= sum(change.size for change in replaced)
    dropped = []
    # A tenth more than needed, so that the next changes do not exceed the limits again.
    for change in rest[:-1]:
        if count <= 0.9 * max_changes and size <= 0.9 * max_bytes:
            break
        dropped.append(change)
        count -= 1
        size -= change.size
    return replaced, dropped
