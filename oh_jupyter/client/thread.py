"""The event loop of a client in a thread of its own, for callers on threads and on other loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from anyio import CancelScope
from anyio.from_thread import BlockingPortal, start_blocking_portal

from oh_jupyter.background import threads_have_ended
from oh_jupyter.errors import ServerError

T = TypeVar("T")


def wait_in(
    portal: BlockingPortal, work: Callable[..., Awaitable[T]], *args: Any, **options: Any
) -> T:
    """Await something in a portal's thread and return the result; an interrupt cancels it."""
    ended = threading.Event()
    scopes: list[CancelScope] = []

    async def run() -> T:
        with CancelScope() as scope:
            scopes.append(scope)
            try:
                return await work(*args, **options)
            finally:
                ended.set()
        raise InterruptedError("The wait for the result was interrupted")

    def cancel() -> None:
        for scope in scopes:
            scope.cancel()

    try:
        return portal.start_task_soon(run).result()
    except KeyboardInterrupt:
        # It may come before there is a future; the task has started when this call runs.
        portal.call(cancel)
        if scopes:
            ended.wait()
        raise


class ClientThread:
    """A thread with an event loop, started by the first call."""

    def __init__(self, at_end: Callable[[], Awaitable[object]]) -> None:
        """Make it; ``at_end`` runs on the loop before the thread ends."""
        self._at_end = at_end
        self._open = ExitStack()
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._is_closed = False

    def wait(self, work: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Await something on the loop and return the result; an interrupt cancels it."""
        return wait_in(self._running_portal(), work, *args, **options)

    async def wait_async(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do the same on any other event loop; cancelling this task cancels the work."""
        return await asyncio.wrap_future(self._running_portal().start_task_soon(work, *args))

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self._is_closed = True
        if threads_have_ended():
            return
        self._open.close()

    def _running_portal(self) -> BlockingPortal:
        """Return the portal to the thread, starting it if necessary."""
        with self._lock:
            if self._is_closed or threads_have_ended():
                raise ServerError("This client is closed; create a new one")
            if self._portal is None:
                self._portal = self._open.enter_context(start_blocking_portal())
                self._open.callback(self._portal.call, self._at_end)
            return self._portal
