"""Requests that wait for their replies, and the watch that ends the wait when none can come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["PendingReplies"]

PING_INTERVAL = 2.0
"""Seconds between pings while somebody waits."""

Message = dict[str, Any]


class PendingReplies:
    """Who waits for the reply to which message."""

    def __init__(
        self,
        ping: Callable[[bool], None],
        grace: Callable[[], float],
        silent: Callable[[float], None],
    ) -> None:
        """Begin with nobody waiting.

        Args:
            ping: Sends a request that every kernel answers at once; it is told whether the one
                before was left unanswered.
            grace: Seconds that the kernel may leave a ping unanswered at the moment.
            silent: Called with these seconds when they are over; it ends the waits.
        """
        self._ping = ping
        self._grace = grace
        self._silent = silent
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._last_answer = 0.0
        self._watch: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def expect(self, msg_id: str) -> asyncio.Future[Message]:
        """Begin to wait for the reply to a message.

        Args:
            msg_id: Id of the message, which is about to be sent.

        Returns:
            A future of the reply; ``forget`` must follow it.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._last_answer = loop.time()
        future = self._waiting[msg_id] = loop.create_future()
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._watch_kernel())
        return future

    def forget(self, msg_id: str) -> None:
        """Wait no longer for the reply to a message.

        Args:
            msg_id: Id of the message.
        """
        self._waiting.pop(msg_id, None)

    def take(self, message: Message) -> None:
        """Take a message that the kernel has sent; any is a sign of life.

        Args:
            message: The message.
        """
        self._last_answer = asyncio.get_running_loop().time()
        future = self._waiting.get(message["parent_header"].get("msg_id", ""))
        if future is not None and not future.done():
            future.set_result(message)

    def fail(self, problem: Exception) -> None:
        """End all waits.

        Args:
            problem: What those who wait are told.
        """
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(problem)

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.cancel()

    async def _watch_kernel(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(PING_INTERVAL)
            grace = self._grace()
            silence = loop.time() - self._last_answer
            if self._waiting and silence > PING_INTERVAL + grace:
                self._silent(grace)
                return
            if self._waiting:
                self._ping(silence > 1.5 * PING_INTERVAL)
