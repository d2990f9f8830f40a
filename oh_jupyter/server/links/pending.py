"""Requests that wait for their replies, and the watch that ends the wait when none can come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oh_jupyter.messages import RECEIVED_MESSAGE

PING_INTERVAL_SECONDS = 2.0
"""Pause between pings while somebody waits."""

RECEIVED_GRACE_SECONDS = 30.0
"""How long a kernel may be silent that has received a request: it may carry it out."""

Message = dict[str, Any]


@dataclass
class Waiting:
    """A request that waits for its reply.

    ``again`` sends it once more, as a message of its own since kernels refuse what they have had
    already, and returns its id; None if that could do harm. ``overdue`` is set while the kernel
    is silent that has received it, and the wait goes on; None if the wait ends then.
    """

    reply: asyncio.Future[Message]
    again: Callable[[], str] | None
    ids: list[str]
    sent: float
    overdue: asyncio.Event | None = None
    received: bool = False

    @property
    def watched(self) -> bool:
        """Whether it is still to be told of a kernel that falls silent."""
        return not self.reply.done() and not (self.overdue and self.overdue.is_set())


class PendingReplies:
    """The requests to one kernel by the ids of their messages."""

    def __init__(
        self,
        ping: Callable[[bool], None],
        grace_seconds: Callable[[], float],
        silent: Callable[[float], None],
    ) -> None:
        """Begin with none.

        ``ping`` sends a request that every kernel answers at once; it is told whether the one
        before was left unanswered for longer than ``grace_seconds`` allows at the moment.
        ``silent`` is called with those; it calls ``fall_silent``.
        """
        self._ping = ping
        self._grace_seconds = grace_seconds
        self._silent = silent
        self._waiting: dict[str, Waiting] = {}
        self._last_answer = 0.0
        self._watch: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def expect(
        self,
        msg_id: str,
        again: Callable[[], str] | None = None,
        overdue: asyncio.Event | None = None,
    ) -> Waiting:
        """Begin to wait for the reply to a message that is about to be sent, until `forget`."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._last_answer = loop.time()
        self._begin_watch()
        waiting = Waiting(loop.create_future(), again, [msg_id], loop.time(), overdue)
        self._waiting[msg_id] = waiting
        return waiting

    def _begin_watch(self) -> None:
        loop = asyncio.get_running_loop()
        if self._watch is None or self._watch.done():
            self._last_answer = loop.time()
            self._watch = loop.create_task(self._watch_kernel())

    def forget(self, waiting: Waiting) -> None:
        """Wait no longer."""
        for msg_id in waiting.ids:
            self._waiting.pop(msg_id, None)

    def take(self, message: Message) -> None:
        """Take a message that the kernel has sent; any is a sign of life."""
        self._last_answer = asyncio.get_running_loop().time()
        for overdue in [w.overdue for w in self._waiting.values() if not w.watched and w.overdue]:
            overdue.clear()
            self._begin_watch()
        waiting = self._waiting.get(message["parent_header"].get("msg_id", ""))
        if waiting is None:
            return
        if message["header"]["msg_type"] == RECEIVED_MESSAGE:
            waiting.received = True
        elif not waiting.reply.done():
            waiting.reply.set_result(message)

    def fail(self, problem: Exception, *, keep_resendable: bool = False) -> None:
        """End all waits, except for messages that can be sent once more where asked."""
        for waiting in list(self._waiting.values()):
            if not waiting.reply.done() and not (keep_resendable and waiting.again):
                waiting.reply.set_exception(problem)

    def fall_silent(self, grace_seconds: float, problem: Callable[[bool], Exception]) -> None:
        """End the waits of a kernel that has not answered for a while.

        What it did not receive is given up after ``grace_seconds``: it has expired there by
        then. ``problem`` makes the error of whether the kernel has received it.
        """
        now = asyncio.get_running_loop().time()
        silence = now - self._last_answer
        for waiting in self._waiting.values():
            allowed = (
                max(grace_seconds, RECEIVED_GRACE_SECONDS) if waiting.received else grace_seconds
            )
            if waiting.reply.done() or min(silence, now - waiting.sent) <= allowed:
                continue
            if waiting.received and waiting.overdue is not None:
                waiting.overdue.set()
            else:
                waiting.reply.set_exception(problem(waiting.received))

    def send_again(self) -> None:
        """Send all messages once more that nobody has answered."""
        for waiting in {id(waiting): waiting for waiting in self._waiting.values()}.values():
            if waiting.again is not None and not waiting.reply.done():
                waiting.ids.append(waiting.again())
                self._waiting[waiting.ids[-1]] = waiting

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.cancel()

    @property
    def all_told(self) -> bool:
        """Whether nobody waits who has not been told how it ended."""
        return all(waiting.reply.done() for waiting in self._waiting.values())

    async def _watch_kernel(self) -> None:
        """Ping while somebody waits who has not been told that the kernel is silent."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(PING_INTERVAL_SECONDS)
            grace_seconds = self._grace_seconds()
            silence = loop.time() - self._last_answer
            if self._waiting and silence > PING_INTERVAL_SECONDS + grace_seconds:
                self._silent(grace_seconds)
            if not any(waiting.watched for waiting in self._waiting.values()):
                return
            self._ping(silence > 1.5 * PING_INTERVAL_SECONDS)
