"""Changes that a webhook reports, and their outcomes."""

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
    """A change to report; ``source`` is a file with large contents."""

    method: Literal["POST", "DELETE"]
    path: str
    key: str
    contents: bytes = b""
    source: str | None = None


@dataclass(frozen=True)
class Delivery:
    """An undelivered change.

    Attributes:
        id: The ``webhook-id`` of the request.
        method: ``POST`` or ``DELETE``.
        path: Path of the file.
        size: Size of the contents in bytes.
        state: ``waiting``, or ``dead`` if it is no longer retried automatically.
        attempts: Number of failed attempts.
        reason: Reason of the last failure; ``""`` before the first attempt.
        recorded: Time of the change in UTC.
        due: Time of the next attempt in UTC; None for now or never.
        superseded: Whether a later change of the file was accepted or is waiting, so that
            replaying a dead letter would revert the receiver to an older state.
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
    """A change that was given up.

    Attributes:
        method: ``POST`` or ``DELETE``.
        path: Path of the file.
        reason: Reason in one line.
    """

    method: str
    path: str
    reason: str


@dataclass(frozen=True)
class DeliveryReport:
    """Outcomes of the changes since the previous report.

    Attributes:
        delivered: Number of accepted changes.
        failed: The changes given up (the last thousand of them).
        pending: Number of changes still waiting, because of a timeout, or in an outbox
            while the receiver is unreachable.
    """

    delivered: int
    failed: tuple[FailedDelivery, ...]
    pending: int


class DeliveryCounter:
    """Thread-safe counter of the outcomes since the last `take`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered = 0
        self._failed: deque[FailedDelivery] = deque(maxlen=_MAX_FAILURES)

    def add_delivered(self, count: int) -> None:
        """Count accepted changes."""
        with self._lock:
            self._delivered += count

    def add_failed(self, failures: Iterable[FailedDelivery]) -> None:
        """Record changes that were given up."""
        with self._lock:
            self._failed.extend(failures)

    def take(self) -> tuple[int, tuple[FailedDelivery, ...]]:
        """Return and reset the number of accepted changes and the list of failures."""
        with self._lock:
            delivered, failed = self._delivered, tuple(self._failed)
            self._delivered = 0
            self._failed.clear()
        return delivered, failed


class RefusedError(Exception):
    """The receiver rejected a request; ``retry_after`` is in seconds."""

    def __init__(
        self, reason: str, *, permanent: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after
