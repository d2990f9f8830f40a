"""Changes that a webhook reports, the requests that report them, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Change:
    """A change to report; ``source`` is a file with large contents."""

    method: Literal["POST", "DELETE"]
    path: str
    key: str
    contents: bytes = b""
    source: str | None = None


class PendingChange(NamedTuple):
    """A recorded change without its contents; times are seconds since the epoch."""

    number: int
    id: str
    method: str
    path: str
    key: str
    size: int = 0
    recorded: float = 0.0
    batch: str | None = None  # id of the request that contained it
    tries: int = 0  # in the current round of quick tries
    attempts: int = 0  # in total
    rounds: int = 0  # failed rounds of quick tries
    due: float = 0.0
    reason: str | None = None  # of the last failure
    applied: bool = True  # by the store
    ours: bool = True  # recorded by this process


class Request(NamedTuple):
    """Changes to report at once, oldest first; a retry has the same id."""

    id: str
    changes: tuple[PendingChange, ...]


@dataclass(frozen=True)
class Failure:
    """Reason why a receiver did not accept a request."""

    reason: str
    answered: bool = True
    permanent: bool = False
    retry_after: float | None = None  # seconds


class RefusedError(Exception):
    """The receiver rejected a request."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


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
