"""A change of a file that a webhook reports, and what became of it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

_MAX_FAILURES = 1000


@dataclass(frozen=True)
class Change:
    """A change that the receiver has to hear of; ``source`` is a file with large contents."""

    method: Literal["POST", "DELETE"]
    path: str
    key: str
    contents: bytes = b""
    source: str | None = None


@dataclass(frozen=True)
class Delivery:
    """A change that has not reached the receiver, as people see it.

    Attributes:
        id: What the receiver gets as ``webhook-id``.
        method: ``POST`` or ``DELETE``.
        path: Of which file.
        size: Bytes of the contents.
        state: ``waiting``, or ``dead`` if it is not tried any more by itself.
        attempts: How often it was sent in vain.
        reason: Why it was not accepted the last time; ``""`` if it was not tried yet.
        recorded: When the change was made, in UTC.
        due: When it is tried again, in UTC; None if that is at once, or never.
        superseded: For a dead one, whether a later change of the file was accepted, or
            waits; sending the old one again would put the receiver back.
    """

    id: str
    method: str
    path: str
    size: int
    state: Literal["waiting", "dead"]
    attempts: int
    reason: str
    recorded: datetime
    due: datetime | None
    superseded: bool = False


@dataclass(frozen=True)
class FailedDelivery:
    """A change that the receiver did not accept, and that is not tried any more.

    Attributes:
        method: ``POST`` or ``DELETE``.
        path: Of which file.
        reason: Why, in one line.
    """

    method: str
    path: str
    reason: str


@dataclass(frozen=True)
class DeliveryReport:
    """What became of the changes since the last report.

    Attributes:
        delivered: How many were accepted.
        failed: Those that were given up (the last thousand of them).
        pending: How many are still waiting: time ran out, or the receiver is away and an
            outbox keeps them for later.
    """

    delivered: int
    failed: tuple[FailedDelivery, ...]
    pending: int


class DeliveryCounter:
    """Counts what became of changes, since it was asked the last time; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered = 0
        self._failed: deque[FailedDelivery] = deque(maxlen=_MAX_FAILURES)

    def add_delivered(self, count: int) -> None:
        """Count changes that were accepted."""
        with self._lock:
            self._delivered += count

    def add_failed(self, failures: Iterable[FailedDelivery]) -> None:
        """Note changes that were given up."""
        with self._lock:
            self._failed.extend(failures)

    def take(self) -> tuple[int, tuple[FailedDelivery, ...]]:
        """Count what was accepted, and list what was given up, since the last time."""
        with self._lock:
            delivered, failed = self._delivered, tuple(self._failed)
            self._delivered = 0
            self._failed.clear()
        return delivered, failed


class RefusedError(Exception):
    """The receiver answered, but did not accept; ``retry_after`` is in seconds."""

    def __init__(
        self, reason: str, *, permanent: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after
