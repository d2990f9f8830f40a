"""Requests that wait for replies, and the watch that ends the wait for a silent kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oh_jupyter.control_messages import RECEIVED_MESSAGE

PING_INTERVAL_SECONDS = 2.0  # pause between pings while requests are pending
RECEIVED_GRACE_SECONDS = 30.0  # silence allowed to a kernel that may be executing a request

Message = dict[str, Any]


@dataclass
class PendingRequest:
    """A request that waits for its reply.

    ``resend`` sends it again as a new message, since kernels reject duplicates, and returns the
    message's id; None if that could do harm. ``overdue`` is set while the kernel is silent that
    has received it, and the wait continues; None if the wait ends then.
    """

    reply: asyncio.Future[Message]
    resend: Callable[[], str] | None
    ids: list[str]
    sent: float
    overdue: asyncio.Event | None = None
    received: bool = False

    @property
    def watched(self) -> bool:
        """Whether the caller must still be notified if the kernel falls silent."""
        return not self.reply.done() and not (self.overdue and self.overdue.is_set())


class PendingReplies:
    """The pending requests to one kernel by the ids of their messages."""

    def __init__(
        self,
        ping: Callable[[bool], None],
        grace_seconds: Callable[[], float],
        silent: Callable[[float], None],
    ) -> None:
        """Take three callbacks.

        ``ping`` sends a request that every kernel answers at once; its argument says whether the
        previous one is unanswered. ``grace_seconds`` returns the silence allowed now. ``silent``
        gets that time when it has passed, and calls ``fall_silent``.
        """
        self._ping = ping
        self._grace_seconds = grace_seconds
        self._silent = silent
        self._requests: dict[str, PendingRequest] = {}
        self._last_message = 0.0
        self._watch: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Whether any request is pending."""
        return bool(self._requests)

    def expect(
        self,
        msg_id: str,
        resend: Callable[[], str] | None = None,
        overdue: asyncio.Event | None = None,
    ) -> PendingRequest:
        """Register a message that is about to be sent, until ``forget``."""
        loop = asyncio.get_running_loop()
        if not self._requests:
            self._last_message = loop.time()
        self._start_watch()
        pending = PendingRequest(loop.create_future(), resend, [msg_id], loop.time(), overdue)
        self._requests[msg_id] = pending
        return pending

    def _start_watch(self) -> None:
        loop = asyncio.get_running_loop()
        if self._watch is None or self._watch.done():
            self._last_message = loop.time()
            self._watch = loop.create_task(self._watch_kernel())

    def forget(self, pending: PendingRequest) -> None:
        """Stop waiting."""
        for msg_id in pending.ids:
            self._requests.pop(msg_id, None)

    def take(self, message: Message) -> None:
        """Take a message of the kernel; any is a sign of life."""
        self._last_message = asyncio.get_running_loop().time()
        for overdue in [p.overdue for p in self._requests.values() if p.overdue and not p.watched]:
            overdue.clear()
            self._start_watch()
        pending = self._requests.get(message["parent_header"].get("msg_id", ""))
        if pending is None:
            return
        if message["header"]["msg_type"] == RECEIVED_MESSAGE:
            pending.received = True
        elif not pending.reply.done():
            pending.reply.set_result(message)

    def fail(self, error: Exception, *, keep_resendable: bool = False) -> None:
        """Fail all requests, optionally except those that can be sent again."""
        for pending in list(self._requests.values()):
            if not pending.reply.done() and not (keep_resendable and pending.resend):
                pending.reply.set_exception(error)

    def fall_silent(self, grace_seconds: float, error: Callable[[bool], Exception]) -> None:
        """Fail the requests of a kernel that has been silent for too long.

        A request that it has not received fails after ``grace_seconds``: by then it has expired
        there. ``error`` makes the exception; its argument says whether the kernel received it.
        """
        now = asyncio.get_running_loop().time()
        silence = now - self._last_message
        received_grace = max(grace_seconds, RECEIVED_GRACE_SECONDS)
        for pending in self._requests.values():
            allowed = received_grace if pending.received else grace_seconds
            if pending.reply.done() or min(silence, now - pending.sent) <= allowed:
                continue
            if pending.received and pending.overdue is not None:
                pending.overdue.set()
            else:
                pending.reply.set_exception(error(pending.received))

    def send_again(self) -> None:
        """Send all unanswered messages again."""
        for pending in {id(pending): pending for pending in self._requests.values()}.values():
            if pending.resend is not None and not pending.reply.done():
                pending.ids.append(pending.resend())
                self._requests[pending.ids[-1]] = pending

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.cancel()

    @property
    def all_done(self) -> bool:
        """Whether every waiter has been notified of the outcome."""
        return all(pending.reply.done() for pending in self._requests.values())

    async def _watch_kernel(self) -> None:
        """Ping while any waiter has not been notified that the kernel is silent."""
        loop = asyncio.get_running_loop()
        while self._requests:
            await asyncio.sleep(PING_INTERVAL_SECONDS)
            grace_seconds = self._grace_seconds()
            silence = loop.time() - self._last_message
            if self._requests and silence > PING_INTERVAL_SECONDS + grace_seconds:
                self._silent(grace_seconds)
            if not any(pending.watched for pending in self._requests.values()):
                return
            self._ping(silence > 1.5 * PING_INTERVAL_SECONDS)
