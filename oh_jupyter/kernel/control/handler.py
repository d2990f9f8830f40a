"""The handler of our request type on the kernel's control channel.

It returns at once, because ipykernel holds a lock around it that interrupt, shutdown and the
debugger need; the control loop sends the reply when the runtime thread is done. Large JSON travels
as a message buffer, encoded once. While a reply is due, Python's switch interval is short:
otherwise each step of a reply could wait 5 ms for a thread that computes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from typing import TYPE_CHECKING, Any

from oh_jupyter._version import __version__
from oh_jupyter.background import run_in_background
from oh_jupyter.control_messages import RECEIVED_MESSAGE, REPLY_MESSAGE, Reply
from oh_jupyter.errors import (
    GenerationChangedError,
    KernelError,
    OhJupyterError,
    RequestExpiredError,
    RuntimeClosedError,
)
from oh_jupyter.kernel.control.rpc import (
    Handler,
    ReplyCache,
    Request,
    failure,
    find_handler,
    perform,
)
from oh_jupyter.runtime import Runtime

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh


SHORT_INTERVAL_SECONDS = 0.0001

RESTORE_DELAY_SECONDS = 5.0
"""How long a reply keeps the interval short: agents seldom send a single Action."""


class ShortSwitchInterval:
    """Reference count of pending replies; the interval is short while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due = 0
        self._usual_seconds = sys.getswitchinterval()

    def acquire(self) -> None:
        """Count one more, from any thread."""
        with self._lock:
            if self._due == 0:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(SHORT_INTERVAL_SECONDS, self._usual_seconds))
            self._due += 1

    def release(self) -> None:
        """Count one less; the last one restores the interval."""
        with self._lock:
            self._due -= 1
            if self._due == 0:
                sys.setswitchinterval(self._usual_seconds)


short_switch_interval = ShortSwitchInterval()
"""The count of this process, which has one switch interval."""


logger = logging.getLogger(__name__)

Send = Callable[[Reply], None]


class ControlHandler:
    """Replies to the ``oh_jupyter_request`` messages of a kernel."""

    def __init__(self, kernel: Any, runtime: Runtime, oh: Oh) -> None:
        self._kernel = kernel
        self._runtime = runtime
        self._oh = oh
        self._pending: dict[str, Future[None]] = {}
        self._long_polls: set[str] = set()
        self._replies = ReplyCache()

    def handle(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Execute a request, whose reply is sent later."""
        content = parent.get("content", {})

        def send(reply: Reply) -> None:
            fields = {"generation": self._runtime.generation, "status": "ok", **reply.fields}
            buffers = [] if reply.body is None else [reply.body]
            self._kernel.session.send(
                stream, REPLY_MESSAGE, fields, parent, ident=ident, buffers=buffers
            )

        def acknowledge() -> None:
            self._kernel.session.send(stream, RECEIVED_MESSAGE, {}, parent, ident=ident)

        try:
            if content.get("op") == "ping":
                send(self._ping())
            elif content.get("op") == "cancel":
                send(Reply({"cancelled": self._cancel(content.get("key"))}))
            else:
                self._accept(parent, send, acknowledge)
        except OhJupyterError as error:
            send(failure(error))

    def unanswered(self) -> list[Future[None]]:
        """Return the requests that have no reply yet, except those that wait for news."""
        pending = dict(self._pending)
        return [pending[key] for key in pending.keys() - self._long_polls]

    def _ping(self) -> Reply:
        pending = list(self._pending)
        return Reply({"version": __version__, "clock": time.monotonic(), "pending": pending})

    def _cancel(self, key: Any) -> bool:
        """Cancel a request if possible."""
        future = self._pending.get(key)
        return future is not None and future.cancel()

    def _accept(self, parent: dict[str, Any], send: Send, acknowledge: Callable[[], None]) -> None:
        """Start an operation on the runtime thread, unless it is a repetition or expired."""
        content = parent.get("content", {})
        generation = content.get("generation")
        if generation is not None and generation != self._runtime.generation:
            raise GenerationChangedError(f"Runtime {generation} has ended; nothing was done")
        handler = find_handler(content.get("op"))
        # The caller can cancel the request by this key.
        key = content.get("key") or parent["header"]["msg_id"]
        resendable = bool(content.get("keep"))
        if resendable and key in self._replies:  # the link's connection broke
            self._repeat_reply(key, send)
            return
        expires = content.get("expires")
        if expires is not None and time.monotonic() > expires:
            raise RequestExpiredError("The request expired before it arrived; nothing was done")
        if expires is not None:
            # From here on, a link without a reply must assume that the request was executed.
            acknowledge()
        keep = self._replies.expect(key) if resendable else None

        def finish(reply: Reply) -> None:
            if keep is not None:
                keep(reply)
            send(reply)

        buffers = [bytes(buffer) for buffer in parent.get("buffers", [])]
        self._start(key, handler, Request(self._runtime, content, buffers, self._oh), finish)

    def _start(self, key: str, handler: Handler[Any], request: Request, finish: Send) -> None:
        loop = self._kernel.control_thread.io_loop
        long_poll = bool(request.content.get("wait"))
        if not long_poll:
            short_switch_interval.acquire()

        async def reply_later() -> None:
            loop.add_callback(send_reply, await _execute(handler, request))

        def send_reply(reply: Reply) -> None:
            if not long_poll:
                loop.call_later(RESTORE_DELAY_SECONDS, short_switch_interval.release)
            finish(reply)

        try:
            # A context of its own: this one may be that of an earlier request, whose reply was
            # sent when this request arrived.
            future = Context().run(self._runtime.submit, reply_later())
        except RuntimeClosedError as error:
            if not long_poll:
                short_switch_interval.release()
            finish(failure(error))
            return
        self._pending[key] = future
        if long_poll:
            self._long_polls.add(key)
        future.add_done_callback(lambda _: self._end(key))

    def _end(self, key: str) -> None:
        self._pending.pop(key, None)
        self._long_polls.discard(key)

    def _repeat_reply(self, key: str, send: Send) -> None:
        """Send the first reply again to a repeated request."""

        async def reply_again() -> None:
            try:
                send(await self._replies.get(key))
            except OhJupyterError as error:
                send(failure(error))

        run_in_background(reply_again())


async def _execute(handler: Handler[Any], request: Request) -> Reply:
    """Execute an operation; return a reply in every case, because the caller waits for it."""
    try:
        return await perform(handler, request)
    except asyncio.CancelledError:
        return failure(RuntimeClosedError("It was cancelled, or the runtime closed"))
    except OhJupyterError as error:
        return failure(error)
    except Exception as error:
        name = handler.declaration.wire_name
        logger.exception("Operation %s failed", name)
        reason = f"Internal error in {name}: {type(error).__name__}: {error}"
        return failure(KernelError(reason))
