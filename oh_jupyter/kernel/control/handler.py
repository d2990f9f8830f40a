"""The control-channel door: requests from the server, answered later.

The handler returns at once, because ipykernel holds a lock around it that interrupt,
shutdown and the debugger need; the reply is sent from the control loop when the runtime
thread is done. Large JSON travels as a message buffer, encoded once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.config import RECEIVED_MESSAGE, REPLY_MESSAGE, REQUEST_MESSAGE
from oh_jupyter.errors import (
    GenerationChangedError,
    KernelError,
    OhJupyterError,
    RequestExpiredError,
    RuntimeClosedError,
    WireError,
)
from oh_jupyter.kernel.control.reply_cache import Answers
from oh_jupyter.kernel.control.rpc import Answer, operations
from oh_jupyter.kernel.control.switch_interval import LINGER, Urgency
from oh_jupyter.runtime import Runtime

__all__ = ["ControlDoor"]

logger = logging.getLogger(__name__)


class ControlDoor:
    """Answers ``oh_jupyter_request`` messages of a kernel."""

    def __init__(self, kernel: Any, runtime: Runtime) -> None:
        """Open the door.

        Args:
            kernel: The ipykernel; its ``control_handlers`` get one more entry.
            runtime: What is behind the door.
        """
        self._kernel = kernel
        self._runtime = runtime
        self._pending: dict[str, Future[None]] = {}
        self._answers = Answers()
        self._repeating: set[asyncio.Task[None]] = set()
        self._urgency = Urgency()
        self._operations = operations(runtime)
        kernel.control_handlers[REQUEST_MESSAGE] = self._handle

    def close(self) -> None:
        """Shut the door: later requests get no reply."""
        if self._kernel.control_handlers.get(REQUEST_MESSAGE) == self._handle:
            del self._kernel.control_handlers[REQUEST_MESSAGE]

    async def _handle(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        content = parent.get("content", {})
        operation = content.get("op")

        def reply(answer: Answer) -> None:
            fields, buffers = answer
            fields = {"generation": self._runtime.generation, **fields}
            self._kernel.session.send(
                stream, REPLY_MESSAGE, fields, parent, ident=ident, buffers=buffers
            )

        if operation == "ping":
            pong = {"status": "ok", "version": __version__, "clock": time.monotonic()}
            reply(({**pong, "pending": list(self._pending)}, []))
            return
        if operation == "cancel":
            reply(({"status": "ok", "cancelled": self._cancel(content.get("key"))}, []))
            return
        asked = content.get("generation")
        if asked is not None and asked != self._runtime.generation:
            reply(_failure(GenerationChangedError(f"Runtime {asked} is no more; nothing was done")))
            return
        handler = self._operations.get(operation)
        if handler is None:
            reply(_failure(WireError(f"There is no operation {operation!r}", "op")))
            return
        buffers = [bytes(buffer) for buffer in parent.get("buffers", [])]
        loop = self._kernel.control_thread.io_loop
        # Under this key the asker can take its request back.
        key = content.get("key") or parent["header"]["msg_id"]
        keep: Callable[[Answer], None] | None = None
        if content.get("keep") and key in self._answers:  # the link's connection broke
            self._repeat(key, reply)
            return
        expires = content.get("expires")
        if expires is not None and time.monotonic() > expires:
            problem = "The request came too late: nobody waits for it any more. Nothing was done"
            reply(_failure(RequestExpiredError(problem)))
            return
        if expires is not None:
            # A link that hears nothing more after this knows that it may be carried out.
            self._kernel.session.send(stream, RECEIVED_MESSAGE, {}, parent, ident=ident)
        if content.get("keep"):
            keep = self._answers.expect(key)

        def finish(answer: Answer) -> None:
            if keep is not None:
                keep(answer)
            reply(answer)

        urgent = not content.get("wait")
        if urgent:
            self._urgency.begin()

        async def answer_later() -> None:
            try:
                answer = await handler(content, buffers)
            except asyncio.CancelledError:
                answer = _failure(RuntimeClosedError("It was cancelled, or the runtime closed"))
            except OhJupyterError as problem:
                answer = _failure(problem)
            except Exception as problem:  # whoever asked must not wait for ever
                logger.exception("Operation %s failed", operation)
                answer = _failure(
                    KernelError(
                        f"Internal error in {operation}: {type(problem).__name__}: {problem}"
                    )
                )
            loop.add_callback(finish, answer)
            if urgent:
                loop.add_callback(loop.call_later, LINGER, self._urgency.end)

        try:
            future = self._runtime.submit(answer_later())
            self._pending[key] = future
            future.add_done_callback(lambda _: self._pending.pop(key, None))
        except RuntimeClosedError as problem:
            if urgent:
                self._urgency.end()
            finish(_failure(problem))

    def _repeat(self, key: str, reply: Callable[[Answer], None]) -> None:
        """Answer a request that was sent once more as it was, or will be, the first time."""

        async def answer_again() -> None:
            try:
                reply(await self._answers.again(key))
            except OhJupyterError as problem:
                reply(_failure(problem))

        task = asyncio.get_running_loop().create_task(answer_again())
        self._repeating.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._repeating.discard)

    def _cancel(self, key: Any) -> bool:
        """Take a request back; what can be interrupted is."""
        future = self._pending.get(key)
        return future is not None and future.cancel()


def _failure(problem: OhJupyterError) -> Answer:
    return {
        "status": "error",
        "ename": type(problem).__name__,
        "evalue": str(problem),
        "field": getattr(problem, "field", ""),
    }, []
