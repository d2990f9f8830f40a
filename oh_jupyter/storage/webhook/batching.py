"""Batches of new changes: when they are full or due."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from oh_jupyter.storage.webhook.changes import Change


@dataclass(frozen=True)
class BatchPolicy:
    """Timing and size of batches; 0 ``batch_bytes`` sends changes one by one."""

    quiet_seconds: float = 0.0
    max_wait_seconds: float = 0.0
    batch_bytes: int = 0


@dataclass
class FreshChanges:
    """Changes that the store has applied since the last plan; times are of the monotonic clock."""

    policy: BatchPolicy
    numbers: list[int] = field(default_factory=list)
    _sizes: dict[str, int] = field(default_factory=dict)  # of the last change of each path
    _size: int = 0
    _first: float = 0.0
    _last: float = 0.0

    def add(self, number: int, change: Change) -> None:
        """Add a change, which replaces an earlier one of its path."""
        self._last = time.monotonic()
        if not self.numbers:
            self._first = self._last
        self.numbers.append(number)
        self._size += len(change.contents) - self._sizes.get(change.key, 0)
        self._sizes[change.key] = len(change.contents)

    @property
    def is_full(self) -> bool:
        """Whether they fill a batch."""
        return 0 < self.policy.batch_bytes <= self._size

    @property
    def due(self) -> float:
        """When they are to be sent, if no more come."""
        if self.is_full:
            return 0.0
        return min(
            self._last + self.policy.quiet_seconds, self._first + self.policy.max_wait_seconds
        )
