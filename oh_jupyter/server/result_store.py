"""Results of requests with an id, kept for a while after their connection."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
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

ID_HEADER = "X-Request-ID"  # a client's id of its request, repeated in the response
RETENTION_SECONDS = 900.0
MAX_RESULTS = 1000
MAX_BYTES = 256 * 1024**2
RETRY_AFTER_SECONDS = 10
ABSENCE_SECONDS = 30.0
"""Time in which a client whose connection broke can return before its question is withdrawn."""

ID_PATTERN = r"[\w.-]{1,128}"
_ID = re.compile(ID_PATTERN, re.ASCII)


@dataclass
class StoredResult:
    """The result of a principal's request, which may still be running.

    ``has_kernel`` says whether its kernel was found; ``overdue`` is set while the kernel is
    silent that has received the request. ``key`` identifies the request in the kernel; ``abandon``
    is called when no client waits for it any more.
    """

    owner: str
    task: asyncio.Task[Reply] = field(init=False)
    overdue: asyncio.Event = field(default_factory=asyncio.Event)
    has_kernel: bool = False
    size_bytes: int = 0
    started: datetime = field(default_factory=partial(datetime.now, UTC))
    ended: datetime | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    abandon: Callable[[], object] = lambda: None
    _clients: int = 0

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Count a client that waits; call ``abandon`` when the last one does not return."""
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1
            if not self._clients and not self.task.done():
                asyncio.get_running_loop().call_later(ABSENCE_SECONDS, self._check_clients)

    def _check_clients(self) -> None:
        if not self._clients and not self.task.done():
            self.abandon()

    async def wait_unless_overdue(self) -> None:
        """Wait until the request is done or overdue."""
        overdue = asyncio.ensure_future(self.overdue.wait())
        try:
            await asyncio.wait({self.task, overdue}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overdue.cancel()


class ResultStore:
    """Results by request id; the oldest are evicted early when there are too many."""

    def __init__(self) -> None:
        self._results: dict[str, StoredResult] = {}
        self._size_bytes = 0

    def start(
        self, key: str, owner: str, work: Callable[[StoredResult], Coroutine[Any, Any, Reply]]
    ) -> StoredResult:
        """Start a request, or return the existing one with that id.

        ``work`` executes it, and continues when the connection breaks. Raises WireError if the id
        is malformed or another principal's, and LimitExceededError if too many are running.
        """
        if not _ID.fullmatch(key):
            raise WireError(f"{ID_HEADER} must be 1 to 128 letters, digits, '-', '_', '.'", "id")
        existing = self._results.get(key)
        if existing is not None:
            if existing.owner != owner:
                raise WireError(f"{ID_HEADER} {key!r} is taken; choose another one", "id")
            if not _may_retry(existing):
                return existing
            self._remove(key, existing)
        if len(self._results) >= MAX_RESULTS and not self._evict_oldest():
            raise LimitExceededError(
                f"{MAX_RESULTS} requests with an id are running already", RETRY_AFTER_SECONDS
            )
        loop = asyncio.get_running_loop()
        stored = self._results[key] = StoredResult(owner)
        stored.task = loop.create_task(work(stored))

        def done(task: asyncio.Task[Reply]) -> None:
            stored.ended = datetime.now(UTC)
            # Retrieving the exception keeps asyncio from logging it.
            if not task.cancelled() and task.exception() is None:
                stored.size_bytes = len(task.result().body or b"")
                self._size_bytes += stored.size_bytes
            loop.call_later(RETENTION_SECONDS, self._remove, key, stored)
            while self._size_bytes > MAX_BYTES and self._evict_oldest():
                pass

        stored.task.add_done_callback(done)
        return stored

    def _remove(self, key: str, stored: StoredResult) -> None:
        """Forget a result unless its id belongs to another one now."""
        if self._results.get(key) is stored:
            del self._results[key]
            self._size_bytes -= stored.size_bytes

    def _evict_oldest(self) -> bool:
        """Forget the oldest finished result; return whether there was one."""
        for key, stored in self._results.items():
            if stored.task.done():
                self._remove(key, stored)
                return True
        return False

    def find(self, key: str, owner: str) -> StoredResult:
        """Return a principal's request, or raise RequestNotFoundError."""
        result = self._results.get(key)
        if result is None or result.owner != owner:
            raise RequestNotFoundError(
                f"There is no request {key!r}; results are kept for "
                f"{RETENTION_SECONDS / 60:.0f} minutes"
            )
        return result


def _may_retry(stored: StoredResult) -> bool:
    """Return whether a request has failed without being executed."""
    task = stored.task
    error = task.exception() if task.done() and not task.cancelled() else None
    if error is not None and not stored.has_kernel:
        return True
    rejected = isinstance(error, LimitExceededError | GenerationChangedError)
    return rejected or (isinstance(error, KernelTimeoutError) and error.withdrawn)
