"""Remote procedure calls: a request, its reply, and the table of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import OhJupyterError, WireError
from oh_jupyter.events.json import parse_json
from oh_jupyter.runtime import Runtime

__all__ = ["Operation", "Reply", "Request", "failure", "find_operation", "operation"]


@dataclass(frozen=True)
class Request:
    """A call of an operation on a runtime.

    Attributes:
        runtime: The runtime.
        fields: Content of the message.
        buffers: Its buffers; of those that carry JSON it is the first.
    """

    runtime: Runtime
    fields: dict[str, Any]
    buffers: list[bytes] = field(default_factory=list)

    def text(self, name: str) -> str:
        """The value of a field; a WireError if it is no string."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise WireError(f"{name!r} must be a string", name)
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
