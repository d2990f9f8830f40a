"""Remote procedure calls: requests, replies, the operations, and a cache of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import (
    DiskFullError,
    GatewayError,
    NotApprovedError,
    OhJupyterError,
    WireError,
    is_full,
)
from oh_jupyter.events.actor import Actor
from oh_jupyter.events.json import encode_json, parse_json
from oh_jupyter.operations import Operation, to_json
from oh_jupyter.runtime import Runtime

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh


@dataclass(frozen=True)
class Request:
    """A request for an operation: the message's content and buffers; the first may be JSON."""

    runtime: Runtime
    content: dict[str, Any]
    buffers: list[bytes]
    oh: Oh

    @property
    def key(self) -> str:
        """Name by which other requests refer to this one; "" if it has none."""
        key = self.content.get("key") or ""
        if not isinstance(key, str):
            raise WireError("'key' must be a string", "key")
        return key

    @property
    def actor(self) -> Actor:
        """Origin that the request names; raises WireError if it is no object."""
        return Actor.from_json(self.content.get("actor"))

    @property
    def is_agents(self) -> bool:
        """Whether an agent makes the request, as opposed to a person's frontend or token."""
        return self.content.get("by_agent") is True

    @property
    def is_confined(self) -> bool:
        """Whether the agent may use only the workspace's files and pages of the web."""
        return self.content.get("confined") is True

    @property
    def wants_notes(self) -> bool:
        """Whether the reply should have the notes for the agent on undone changes."""
        return self.content.get("notes") is True

    def json(self, name: str = "body") -> Any:
        """Return the parsed body; raise WireError for field ``name`` if there is none."""
        if not self.buffers:
            raise WireError("The request has no body", name)
        return parse_json(self.buffers[0])


R = TypeVar("R")


Execute = Callable[[Request, Any], Awaitable[R | Reply]]
"""Coroutine function that executes an operation on the runtime thread.

It returns a `Reply` if the JSON is encoded already."""


class Handler(NamedTuple, Generic[R]):
    """The declaration of an operation, and the function that executes it."""

    declaration: type[Operation[R]]
    execute: Execute[R]


_handlers: dict[str, Handler[Any]] = {}

_MODULES = (
    "runtime_rpc",
    "file_rpc",
    "person_rpc",
    "store_rpc",
    "kernel_rpc",
    "changes_rpc",
)
"""Modules of operations, imported in this order until one registers the requested operation.

A kernel that only executes Actions needs the first, which takes a third of their memory."""


def handles(declaration: type[Operation[R]]) -> Callable[[Execute[R]], Execute[R]]:
    """Decorator that registers a coroutine function as the handler of an operation."""

    def register(execute: Execute[R]) -> Execute[R]:
        _handlers[declaration.wire_name] = Handler(declaration, execute)
        return execute

    return register


async def perform(handler: Handler[Any], request: Request) -> Reply:
    """Check and execute an operation.

    Raises:
        NotApprovedError: An agent asks for an operation that only a person may ask for.
        WireError: An argument is invalid.
    """
    declaration = handler.declaration
    if declaration.scope == "person" and request.is_agents:
        raise NotApprovedError(
            f"Only a person may ask for {declaration.wire_name!r}; nothing was done"
        )
    result = await handler.execute(request, declaration.from_fields(request.content))
    if isinstance(result, Reply):
        return result
    return Reply() if result is None else Reply(body=encode_json(to_json(result)))


def find_handler(name: Any) -> Handler[Any]:
    """Return the handler of an operation; raise WireError if there is none."""
    for module in _MODULES:
        # This waits until a module is complete that another thread imports.
        import_module(f"oh_jupyter.kernel.control.{module}")
        if isinstance(name, str) and name in _handlers:
            return _handlers[name]
    raise WireError(f"There is no operation {name!r}", "op")


def failure(error: OhJupyterError) -> Reply:
    """Return the reply that carries an error."""
    name = type(error).__name__
    if isinstance(error, OSError) and is_full(error):
        name = DiskFullError.__name__
    fields = {"status": "error", "ename": name, "evalue": str(error)}
    return Reply({**fields, "field": getattr(error, "field", "")})


CACHE_SECONDS = 60.0
"""Longer than a link tries to reconnect."""

CACHE_BYTES = 16 * 1024**2
"""Maximum size of all cached bodies; larger ones are dropped, but known to be done."""


class ReplyCache:
    """The requests of the last minute by key, on the kernel's control loop."""

    def __init__(self) -> None:
        self._replies: dict[str, asyncio.Future[Reply] | None] = {}
        self._body_bytes: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether a request with this key was seen."""
        return key in self._replies

    def expect(self, key: str) -> Callable[[Reply], None]:
        """Register a new request; return the function that stores its reply."""
        loop = asyncio.get_running_loop()
        future = self._replies[key] = loop.create_future()

        def keep(reply: Reply) -> None:
            future.set_result(reply)
            self._body_bytes[key] = len(reply.body or b"")
            loop.call_later(CACHE_SECONDS, self._forget, key)
            self._evict()

        return keep

    def _evict(self) -> None:
        """Drop the oldest replies; remember that they were sent."""
        excess = sum(self._body_bytes.values()) - CACHE_BYTES
        for key, size in list(self._body_bytes.items()):
            if excess > 0 and size:
                self._replies[key], self._body_bytes[key] = None, 0
                excess -= size

    def _forget(self, key: str) -> None:
        self._replies.pop(key, None)
        self._body_bytes.pop(key, None)

    async def get(self, key: str) -> Reply:
        """Wait for the reply to a known request; raise GatewayError if it was dropped."""
        future = self._replies[key]
        if future is None:
            raise GatewayError(
                "The connection broke, and the reply was too large to keep. The request was "
                "executed; see the event log for its result"
            )
        return await asyncio.shield(future)
