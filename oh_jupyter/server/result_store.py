"""Results of requests with an id, which outlive their connection for a while."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from oh_jupyter.errors import (
    GenerationChangedError,
    KernelTimeoutError,
    LimitExceededError,
    RequestNotFoundError,
    WireError,
)
from oh_jupyter.server.links import Reply

ID_HEADER = "X-Request-ID"
"""Header by which a client names its request; the answer has it, too."""

RETENTION_SECONDS = 900.0
MAX_RESULTS = 1000
MAX_BYTES = 256 * 1024**2
RETRY_AFTER_SECONDS = 10

_ID = re.compile(r"[\w.-]{1,128}", re.ASCII)


@dataclass
class StoredResult:
    """The result of a principal's request, which may be under way.

    ``has_kernel`` says whether there is a kernel to send it to; ``overdue`` is set while that is
    silent, after it has received the request.
    """

    owner: str
    task: asyncio.Task[Reply] = field(init=False)
    overdue: asyncio.Event = field(default_factory=asyncio.Event)
    has_kernel: bool = False
    size_bytes: int = 0
    begun: datetime = field(default_factory=partial(datetime.now, UTC))
    ended: datetime | None = None

    async def wait_unless_overdue(self) -> None:
        """Wait until it is done or overdue."""
        overdue = asyncio.ensure_future(self.overdue.wait())
        try:
            await asyncio.wait({self.task, overdue}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overdue.cancel()


class ResultStore:
    """Results by request id; when there are very many, the oldest are evicted earlier."""

    def __init__(self) -> None:
        self._results: dict[str, StoredResult] = {}
        self._size_bytes = 0

    def start(
        self, key: str, owner: str, work: Callable[[StoredResult], Coroutine[Any, Any, Reply]]
    ) -> StoredResult:
        """Start a request, unless there is one of that id already, which then is taken.

        ``work`` answers it, and tells of its kernel; it goes on when the connection breaks.
        WireError if the id is unusable, or another principal's; LimitExceededError if there are
        too many, all under way.
        """
        if not _ID.fullmatch(key):
            raise WireError(f"{ID_HEADER} must be 1 to 128 letters, digits, '-', '_', '.'", "id")
        known = self._results.get(key)
        if known is not None and known.owner == owner and _nothing_done(known):
            self._remove(key, known)
            known = None
        if known is not None:
            if known.owner != owner:
                raise WireError(f"{ID_HEADER} {key!r} is taken; choose another one", "id")
            return known
        if len(self._results) >= MAX_RESULTS and not self._evict_oldest():
            raise LimitExceededError(
                f"{MAX_RESULTS} requests with an id are under way already", RETRY_AFTER_SECONDS
            )
        loop = asyncio.get_running_loop()
        stored = self._results[key] = StoredResult(owner)
        stored.task = loop.create_task(work(stored))

        def done(task: asyncio.Task[Reply]) -> None:
            stored.ended = datetime.now(UTC)
            # Asked for the exception, it is not logged: it may be that nobody else asks.
            if not task.cancelled() and task.exception() is None:
                stored.size_bytes = len(task.result().body or b"")
                self._size_bytes += stored.size_bytes
            loop.call_later(RETENTION_SECONDS, self._remove, key, stored)
            while self._size_bytes > MAX_BYTES and self._evict_oldest():
                pass

        stored.task.add_done_callback(done)
        return stored

    def _remove(self, key: str, stored: StoredResult) -> None:
        """Forget a result, unless that has been done; the id may be another one's now."""
        if self._results.get(key) is stored:
            del self._results[key]
            self._size_bytes -= stored.size_bytes

    def _evict_oldest(self) -> bool:
        """Forget the oldest result, if there is any."""
        for key, stored in self._results.items():
            if stored.task.done():
                self._remove(key, stored)
                return True
        return False

    def find(self, key: str, owner: str) -> StoredResult:
        """A request; RequestNotFoundError if this principal has none, or no more."""
        known = self._results.get(key)
        if known is None or known.owner != owner:
            raise RequestNotFoundError(
                f"There is no request {key!r}; an answer is kept for "
                f"{RETENTION_SECONDS / 60:.0f} minutes"
            )
        return known


def _nothing_done(stored: StoredResult) -> bool:
    """Whether a request has failed in a way that makes it right to carry it out after all."""
    task = stored.task
    problem = task.exception() if task.done() and not task.cancelled() else None
    if problem is not None and not stored.has_kernel:
        return True
    refused = isinstance(problem, LimitExceededError | GenerationChangedError)
    return refused or (isinstance(problem, KernelTimeoutError) and problem.withdrawn)
