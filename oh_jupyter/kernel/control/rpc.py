"""Remote procedure calls: a request, its reply, the table of operations, and the last replies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_jupyter.errors import GatewayError, OhJupyterError, WireError
from oh_jupyter.events.json import parse_json
from oh_jupyter.runtime import Runtime

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh


@dataclass(frozen=True)
class Request:
    """A call of an operation: the message's content and buffers; the first may be JSON."""

    runtime: Runtime
    fields: dict[str, Any]
    buffers: list[bytes]
    oh: Oh

    def text(self, name: str) -> str:
        """The value of a field; a WireError if it is no string."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise WireError(f"{name!r} must be a string", name)
        return value

    def flag(self, name: str) -> bool:
        """Whether a field says yes; a WireError if it says neither yes nor no."""
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise WireError(f"{name!r} must be true or false", name)
        return value

    def json(self, name: str = "body") -> Any:
        """The parsed body; a WireError that names a field if there is none."""
        if not self.buffers:
            raise WireError("The request has no body", name)
        return parse_json(self.buffers[0])


@dataclass(frozen=True)
class Reply:
    """What an operation answers.

    Attributes:
        fields: Content of the message; its status is "ok" unless they say otherwise.
        body: Bytes that travel as a buffer, or None.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None


Operation = Callable[[Request], Awaitable[Reply]]
"""What runs on the runtime thread for one kind of request."""

_operations: dict[str, Operation] = {}


def operation(name: str) -> Callable[[Operation], Operation]:
    """Decorator that makes a coroutine function the operation of a name."""

    def register(function: Operation) -> Operation:
        _operations[name] = function
        return function

    return register


def find_operation(name: Any) -> Operation:
    """The operation of a name; a WireError if there is none."""
    found = _operations.get(name) if isinstance(name, str) else None
    if found is None:
        raise WireError(f"There is no operation {name!r}", "op")
    return found


def failure(problem: OhJupyterError) -> Reply:
    """The reply that carries an error."""
    fields = {"status": "error", "ename": type(problem).__name__, "evalue": str(problem)}
    return Reply({**fields, "field": getattr(problem, "field", "")})


KEPT_SECONDS = 60.0
"""For longer than a link tries to connect again."""

KEPT_BYTES = 16 * 1024**2
"""Of all bodies together; a larger one is told to be done, and lost."""


class ReplyCache:
    """The requests of the last minute by key, on one loop: the kernel's control loop."""

    def __init__(self) -> None:
        self._replies: dict[str, asyncio.Future[Reply] | None] = {}
        self._body_bytes: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Whether a request with this key was seen."""
        return key in self._replies

    def expect(self, key: str) -> Callable[[Reply], None]:
        """Note a request that is seen for the first time; what is returned takes its reply."""
        loop = asyncio.get_running_loop()
        future = self._replies[key] = loop.create_future()

        def keep(reply: Reply) -> None:
            future.set_result(reply)
            self._body_bytes[key] = len(reply.body or b"")
            loop.call_later(KEPT_SECONDS, self._forget, key)
            self._evict()

        return keep

    def _evict(self) -> None:
        """Forget what the oldest replies say; that they were given stays known."""
        excess = sum(self._body_bytes.values()) - KEPT_BYTES
        for key, size in list(self._body_bytes.items()):
            if excess > 0 and size:
                self._replies[key], self._body_bytes[key] = None, 0
                excess -= size

    def _forget(self, key: str) -> None:
        self._replies.pop(key, None)
        self._body_bytes.pop(key, None)

    async def get(self, key: str) -> Reply:
        """Wait for the reply to a request that was seen; a GatewayError if it is not kept."""
        future = self._replies[key]
        if future is None:
            raise GatewayError(
                "The connection broke, and the answer is too large to have been kept. What was "
                "asked has been done; the event log has what came of it"
            )
        return await asyncio.shield(future)
