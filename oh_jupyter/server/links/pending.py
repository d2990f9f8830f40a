"""Requests that wait for their replies, and the watch that ends the wait when none can come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["PendingReplies"]

PING_INTERVAL = 2.0
"""Seconds between pings while somebody waits."""

Message = dict[str, Any]


@dataclass
class Waiting:
    """Who waits for a reply.

    Attributes:
        reply: The reply, when it is there.
        again: Sends the request once more, as a message of its own since kernels refuse what
            they have had already, and returns its id; None if that could do harm.
        ids: Ids of the messages that were sent.
    """

    reply: asyncio.Future[Message]
    again: Callable[[], str] | None
    ids: list[str]


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
        self._waiting: dict[str, Waiting] = {}
        self._last_answer = 0.0
        self._watch: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def expect(self, msg_id: str, again: Callable[[], str] | None = None) -> Waiting:
        """Begin to wait for the reply to a message.

        Args:
            msg_id: Id of the message, which is about to be sent.
            again: Sends the request once more; None if that could do harm.

        Returns:
            What waits; ``forget`` must follow.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._last_answer = loop.time()
        waiting = self._waiting[msg_id] = Waiting(loop.create_future(), again, [msg_id])
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._watch_kernel())
        return waiting

    def forget(self, waiting: Waiting) -> None:
        """Wait no longer.

        Args:
            waiting: What ``expect`` returned.
        """
        for msg_id in waiting.ids:
            self._waiting.pop(msg_id, None)

    def take(self, message: Message) -> None:
        """Take a message that the kernel has sent; any is a sign of life.

        Args:
            message: The message.
        """
        self._last_answer = asyncio.get_running_loop().time()
        waiting = self._waiting.get(message["parent_header"].get("msg_id", ""))
        if waiting is not None and not waiting.reply.done():
            waiting.reply.set_result(message)

    def fail(self, problem: Exception, *, keep_resendable: bool = False) -> None:
        """End all waits.

        Args:
            problem: What those who wait are told.
            keep_resendable: Except for messages that can be sent once more.
        """
        for waiting in list(self._waiting.values()):
            if not waiting.reply.done() and not (keep_resendable and waiting.again):
                waiting.reply.set_exception(problem)

    def send_again(self) -> None:
        """Send all messages once more that nobody has answered."""
        self._last_answer = asyncio.get_running_loop().time()
        for waiting in {id(waiting): waiting for waiting in self._waiting.values()}.values():
            if waiting.again is not None and not waiting.reply.done():
                waiting.ids.append(waiting.again())
                self._waiting[waiting.ids[-1]] = waiting

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
