"""A change of a file that a webhook reports, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DeliveryReport", "FailedDelivery", "RefusedError", "Update"]


@dataclass(frozen=True)
class Update:
    """A change of a file that the receiver has to hear of.

    Attributes:
        method: ``POST`` for a write, ``DELETE`` for a deletion.
        path: The path as the writer gave it.
        key: The one spelling of it.
        contents: What was written; empty for a deletion.
    """

    method: Literal["POST", "DELETE"]
    path: str
    key: str
    contents: bytes = b""


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
        pending: How many are still waiting, because time ran out.
    """

    delivered: int
    failed: tuple[FailedDelivery, ...]
    pending: int


class RefusedError(Exception):
    """The receiver answered, but did not accept.

    Attributes:
        permanent: Whether trying again is pointless.
        retry_after: Seconds that the receiver asks to wait, or None.
    """

    def __init__(
        self, reason: str, *, permanent: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.permanent = permanent
        self.retry_after = retry_after
