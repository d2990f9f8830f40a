"""The handler of our request type on the kernel's control channel.

It returns at once, because ipykernel holds a lock around it that interrupt, shutdown and the
debugger need; the reply is sent from the control loop when the runtime thread is done. Large
JSON travels as a message buffer, encoded once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import oh_jupyter.kernel.control.changes_rpc
import oh_jupyter.kernel.control.file_rpc
import oh_jupyter.kernel.control.person_rpc
import oh_jupyter.kernel.control.runtime_rpc
import oh_jupyter.kernel.control.store_rpc  # noqa: F401 - its operations register
from oh_jupyter._version import __version__
from oh_jupyter.background import run_in_background
from oh_jupyter.errors import (
    GenerationChangedError,
    KernelError,
    OhJupyterError,
    RequestExpiredError,
    RuntimeClosedError,
)
from oh_jupyter.kernel.control.rpc import (
    Operation,
    Reply,
    ReplyCache,
    Request,
    failure,
    find_operation,
)
from oh_jupyter.messages import RECEIVED_MESSAGE, REPLY_MESSAGE
from oh_jupyter.runtime import Runtime

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh

SHORT_INTERVAL_SECONDS = 0.0001

RESTORE_DELAY_SECONDS = 5.0
"""How long a reply keeps the interval short: agents seldom come with one Action only."""


class ShortSwitchInterval:
    """Reference count of the replies that are due; the interval is short while there are any."""

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


logger = logging.getLogger(__name__)

Send = Callable[[Reply], None]


class ControlHandler:
    """Answers the ``oh_jupyter_request`` messages of a kernel."""

    def __init__(self, kernel: Any, runtime: Runtime, oh: Oh) -> None:
        self._kernel = kernel
        self._runtime = runtime
        self._oh = oh
        self._pending: dict[str, Future[None]] = {}
        self._replies = ReplyCache()
        self._switch_interval = ShortSwitchInterval()

    def handle(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Carry out a request, whose reply is sent later."""
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
                self._begin(parent, send, acknowledge)
        except OhJupyterError as error:
            send(failure(error))

    def _ping(self) -> Reply:
        pending = list(self._pending)
        return Reply({"version": __version__, "clock": time.monotonic(), "pending": pending})

    def _cancel(self, key: Any) -> bool:
        """Take a request back; what can be interrupted is."""
        future = self._pending.get(key)
        return future is not None and future.cancel()

    def _begin(self, parent: dict[str, Any], send: Send, acknowledge: Callable[[], None]) -> None:
        """Start an operation on the runtime thread, unless it was started or came too late."""
        content = parent.get("content", {})
        asked = content.get("generation")
        if asked is not None and asked != self._runtime.generation:
            raise GenerationChangedError(f"Runtime {asked} is no more; nothing was done")
        operation = find_operation(content.get("op"))
        # By this key whoever asks can take the request back.
        key = content.get("key") or parent["header"]["msg_id"]
        resendable = bool(content.get("keep"))
        if resendable and key in self._replies:  # the link's connection broke
            self._send_again(key, send)
            return
        expires = content.get("expires")
        if expires is not None and time.monotonic() > expires:
            raise RequestExpiredError(
                "The request came too late: nobody waits for it any more. Nothing was done"
            )
        if expires is not None:
            # A link that hears nothing more after this knows that it may be carried out.
            acknowledge()
        keep = self._replies.expect(key) if resendable else None

        def finish(reply: Reply) -> None:
            if keep is not None:
                keep(reply)
            send(reply)

        buffers = [bytes(buffer) for buffer in parent.get("buffers", [])]
        self._start(key, operation, Request(self._runtime, content, buffers, self._oh), finish)

    def _start(self, key: str, operation: Operation, request: Request, finish: Send) -> None:
        loop = self._kernel.control_thread.io_loop
        long_poll = bool(request.fields.get("wait"))
        if not long_poll:
            self._switch_interval.acquire()

        async def reply_later() -> None:
            loop.add_callback(send_reply, await _carried_out(operation, request))

        def send_reply(reply: Reply) -> None:
            if not long_poll:
                loop.call_later(RESTORE_DELAY_SECONDS, self._switch_interval.release)
            finish(reply)

        try:
            future = self._runtime.submit(reply_later())
        except RuntimeClosedError as error:
            if not long_poll:
                self._switch_interval.release()
            finish(failure(error))
            return
        self._pending[key] = future
        future.add_done_callback(lambda _: self._pending.pop(key, None))

    def _send_again(self, key: str, send: Send) -> None:
        """Answer a request that was sent once more as it was, or will be, the first time."""

        async def reply_again() -> None:
            try:
                send(await self._replies.get(key))
            except OhJupyterError as error:
                send(failure(error))

        run_in_background(reply_again())


async def _carried_out(operation: Operation, request: Request) -> Reply:
    """The reply of an operation, whatever becomes of it: whoever asked must not wait for ever."""
    try:
        return await operation(request)
    except asyncio.CancelledError:
        return failure(RuntimeClosedError("It was cancelled, or the runtime closed"))
    except OhJupyterError as error:
        return failure(error)
    except Exception as error:
        name = request.fields.get("op")
        logger.exception("Operation %s failed", name)
        reason = f"Internal error in {name}: {type(error).__name__}: {error}"
        return failure(KernelError(reason))
