"""Answers that outlive their connection: a request with an id can be asked for again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import (
    GenerationChangedError,
    KernelTimeoutError,
    LimitExceededError,
    RequestNotFoundError,
    WireError,
)
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.links import Reply

__all__ = ["ID_HEADER", "RequestHandler", "Requests"]

ID_HEADER = "X-Request-ID"
"""Header by which a client names its request; the answer has it, too."""

_ID = re.compile(r"[\w.-]{1,128}", re.ASCII)
_KEPT_SECONDS = 900.0
_MOST_KEPT = 1000
_MOST_BYTES = 256 * 1024**2
_LONGEST_WAIT = 300.0


@dataclass
class StoredRequest:
    """A request with an id, and its answer when there is one.

    Attributes:
        owner: Name of the user.
        task: Yields the answer.
        overdue: Set while the kernel is silent that has received it.
        size: Bytes of the answer.
    """

    owner: str
    task: asyncio.Task[Reply]
    overdue: asyncio.Event
    size: int = 0

    async def wait_unless_overdue(self) -> None:
        """Wait until it is done or overdue."""
        overdue = asyncio.ensure_future(self.overdue.wait())
        try:
            await asyncio.wait({self.task, overdue}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overdue.cancel()


class Requests:
    """Requests that were given an id, under way and for a while afterwards.

    When there are very many, the oldest answers are forgotten earlier.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[str, StoredRequest] = {}
        self._size = 0

    def start(
        self, key: str, owner: str, work: Callable[[asyncio.Event], Coroutine[Any, Any, Reply]]
    ) -> StoredRequest:
        """Start a request, unless there is one of that id already, which then is taken.

        Args:
            key: The client's id of it.
            owner: Name of the user.
            work: Answers it, and sets the event while its kernel is silent.

        Returns:
            The request; its task goes on when the connection breaks.

        Raises:
            WireError: The id is unusable, or another user's.
            LimitExceededError: There are too many, all under way.
        """
        if not _ID.fullmatch(key):
            raise WireError(f"{ID_HEADER} must be 1 to 128 letters, digits, '-', '_', '.'", "id")
        known = self._kept.get(key)
        if known is not None and known.owner == owner and _nothing_done(known.task):
            self._forget(key, known)
            known = None
        if known is not None:
            if known.owner != owner:
                raise WireError(f"{ID_HEADER} {key!r} is taken; choose another one", "id")
            return known
        if len(self._kept) >= _MOST_KEPT and not self._forget_oldest():
            raise LimitExceededError(f"{_MOST_KEPT} requests with an id are under way already", 10)
        loop = asyncio.get_running_loop()
        overdue = asyncio.Event()
        task = loop.create_task(work(overdue))
        kept = self._kept[key] = StoredRequest(owner, task, overdue)

        def done(task: asyncio.Task[Reply]) -> None:
            # Asked for the exception, it is not logged: it may be that nobody else asks.
            if not task.cancelled() and task.exception() is None:
                kept.size = len(task.result().body or b"")
                self._size += kept.size
            loop.call_later(_KEPT_SECONDS, self._forget, key, kept)
            while self._size > _MOST_BYTES and self._forget_oldest():
                pass

        task.add_done_callback(done)
        return kept

    def _forget(self, key: str, kept: StoredRequest) -> None:
        """Forget an answer, unless that has been done; the id may be another one's now."""
        if self._kept.get(key) is kept:
            del self._kept[key]
            self._size -= kept.size

    def _forget_oldest(self) -> bool:
        """Forget the oldest answer, if there is any."""
        for key, kept in self._kept.items():
            if kept.task.done():
                self._forget(key, kept)
                return True
        return False

    def find(self, key: str, owner: str) -> asyncio.Task[Reply]:
        """Find a request.

        Args:
            key: Its id.
            owner: Name of the user.

        Returns:
            The task.

        Raises:
            RequestNotFoundError: This user has none of that id, or no more.
        """
        known = self._kept.get(key)
        if known is None or known.owner != owner:
            raise RequestNotFoundError(
                f"There is no request {key!r}; an answer is kept for "
                f"{_KEPT_SECONDS / 60:.0f} minutes"
            )
        return known.task


def _nothing_done(task: asyncio.Task[Reply]) -> bool:
    """Whether a request has failed in a way that makes it right to carry it out after all."""
    problem = task.exception() if task.done() and not task.cancelled() else None
    refused = isinstance(problem, LimitExceededError | GenerationChangedError)
    return refused or (isinstance(problem, KernelTimeoutError) and problem.withdrawn)


class RequestHandler(OhHandler):
    """GET the answer of a request that was sent with an id; DELETE to take it back."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, key: str) -> None:
        """Send the answer as ``execute_action`` would have, or 202 while there is none.

        Args:
            key: The id.
        """
        wait = self._seconds()
        task = self._requests.find(key, self.asker)
        await asyncio.wait({task}, timeout=wait)
        self.set_header(ID_HEADER, key)
        if not task.done():
            self.set_status(202)
            self.finish_json({"status": "running"})
        elif task.cancelled():
            raise web.HTTPError(410, "The request was cancelled")
        else:
            self.finish_json(task.result().body or b"null")

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def delete(self, key: str) -> None:
        """Cancel it, if it is not done.

        Args:
            key: The id.
        """
        self._requests.find(key, self.asker).cancel()
        self.set_status(204)
        self.finish()

    @property
    def _requests(self) -> Requests:
        found: Requests = self.settings["oh_jupyter_requests"]
        return found

    def _seconds(self) -> float:
        text = self.get_query_argument("wait", "0")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1
        if not 0 <= seconds <= _LONGEST_WAIT:
            raise WireError(
                f"'wait' must be 0 to {_LONGEST_WAIT:.0f} seconds, not {text!r}", "wait"
            )
        return seconds
