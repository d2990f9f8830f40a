"""The control-channel door: requests from the server, answered later.

The handler returns at once, because ipykernel holds a lock around it that interrupt,
shutdown and the debugger need; the reply is sent from the control loop when the runtime
thread is done. Large JSON travels as a message buffer, encoded once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.config import REPLY_MESSAGE, REQUEST_MESSAGE
from oh_jupyter.errors import (
    EventNotFoundError,
    GenerationChangedError,
    OhJupyterError,
    RuntimeClosedError,
    WireError,
)
from oh_jupyter.events.wire import runnable_from_wire, to_wire
from oh_jupyter.kernel.urgency import LINGER, Urgency
from oh_jupyter.runtime import Runtime, list_directory

__all__ = ["ControlDoor"]

Answer = tuple[dict[str, Any], list[bytes]]
Operation = Callable[[dict[str, Any], list[bytes]], Awaitable[Answer]]


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
        self._pending: set[str] = set()
        self._urgency = Urgency()
        self._operations: dict[str, Operation] = {
            "execute_action": self._execute_action,
            "list_files": self._list_files,
            "status": self._status,
            "events": self._events,
            "event": self._event,
        }
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
            reply(({"status": "ok", "version": __version__, "pending": list(self._pending)}, []))
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
        msg_id = parent["header"]["msg_id"]
        self._pending.add(msg_id)
        self._urgency.begin()

        async def answer_later() -> None:
            try:
                answer = await handler(content, buffers)
            except asyncio.CancelledError:
                answer = _failure(RuntimeClosedError("The runtime was closed meanwhile"))
            except OhJupyterError as problem:
                answer = _failure(problem)
            self._pending.discard(msg_id)
            loop.add_callback(reply, answer)
            loop.add_callback(loop.call_later, LINGER, self._urgency.end)

        try:
            self._runtime.submit(answer_later())
        except RuntimeClosedError as problem:
            self._pending.discard(msg_id)
            self._urgency.end()
            reply(_failure(problem))

    async def _execute_action(self, content: dict[str, Any], buffers: list[bytes]) -> Answer:
        action = runnable_from_wire(_parsed(buffers))
        observation = await self._runtime.executor.run_action(action, action.source or "agent")
        return {"status": "ok"}, [json.dumps(to_wire(observation)).encode()]

    async def _list_files(self, content: dict[str, Any], buffers: list[bytes]) -> Answer:
        executor = self._runtime.executor
        names = await executor.in_thread(
            list_directory, content.get("path"), executor.workspace_dir
        )
        return {"status": "ok", "names": names}, []

    async def _status(self, content: dict[str, Any], buffers: list[bytes]) -> Answer:
        return {"status": "ok", "runtime": self._runtime.status()}, []

    async def _events(self, content: dict[str, Any], buffers: list[bytes]) -> Answer:
        from oh_jupyter.kernel.broadcast import clipped

        found = await self._runtime.executor.in_thread(
            self._runtime.events.search,
            start=content.get("start_id", 0),
            limit=content.get("limit"),
        )
        listing = [clipped(to_wire(event)) for event in found]
        return {"status": "ok"}, [json.dumps(listing).encode()]

    async def _event(self, content: dict[str, Any], buffers: list[bytes]) -> Answer:
        number = content.get("id", -1)
        try:
            event = await self._runtime.executor.in_thread(self._runtime.events.get_event, number)
        except FileNotFoundError:
            raise EventNotFoundError(
                f"There is no event {number}; the last one is {self._runtime.events.latest_id}"
            ) from None
        return {"status": "ok"}, [json.dumps(to_wire(event)).encode()]


def _parsed(buffers: list[bytes]) -> Any:
    if not buffers:
        raise WireError("The request has no body", "action")
    try:
        data = json.loads(buffers[0])
    except ValueError as problem:
        raise WireError(f"The body is not JSON: {problem}", "body") from None
    if not isinstance(data, dict) or not isinstance(data.get("action"), dict):
        raise WireError("The body must be a JSON object with an 'action' object", "action")
    return data["action"]


def _failure(problem: OhJupyterError) -> Answer:
    return {
        "status": "error",
        "ename": type(problem).__name__,
        "evalue": str(problem),
        "field": getattr(problem, "field", ""),
    }, []
