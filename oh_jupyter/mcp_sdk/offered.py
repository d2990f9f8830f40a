"""Interface of a server's tools for both major versions, and notification of their changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.lowlevel

APPS = "io.modelcontextprotocol/ui"
"""Extension for pages that a client shows its person, MCP Apps."""

APP_TYPE = "text/html;profile=mcp-app"
"""Type of these pages."""

Elicit = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any] | None]]
"""Shows the client's person a message and a form, given as a JSON schema. Returns what was filled
in, ``{"approve": False}`` if the person declined, or None if the form was dismissed."""


@dataclass(frozen=True)
class ToolRequest:
    """A call of a tool, with the ASGI scope of its request, which is empty on a stream.

    ``client`` is the client's name for people, "" if unknown. ``report_progress`` takes a growing
    number and a text; None if the client wants no progress. ``elicit`` asks the client's person
    during the call, and ``retry`` is set if the client asks its person and repeats the call; both
    are None if the client cannot ask. ``trace`` is the W3C trace context of the call. ``has_apps``
    is whether the client shows MCP Apps.
    """

    name: str
    arguments: dict[str, Any]
    scope: Mapping[str, Any]
    report_progress: Callable[[float, str], Awaitable[None]] | None
    elicit: Elicit | None = None
    client: str = ""
    retry: Retry | None = None
    trace: Mapping[str, str] = field(default_factory=dict)
    has_apps: bool = False


@dataclass(frozen=True)
class Retry:
    """State and responses with which a client repeats a call whose result required input.

    ``state`` is "" in the first request of a call.
    """

    state: str = ""
    responses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def form_content(action: str, content: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a client's response to an elicitation, see ``Elicit``."""
    if action == "accept":
        return dict(content or {})
    return {"approve": False} if action == "decline" else None


class OfferedTools(Protocol):
    """Tools that a server offers."""

    async def list_tools(self, *, has_apps: bool) -> list[dict[str, Any]]:
        """List the tools; an ``OhJupyterError`` becomes an error of the protocol.

        ``has_apps`` is whether the client shows MCP Apps.
        """
        ...

    async def call_tool(self, call: ToolRequest) -> dict[str, Any]:
        """Execute a call and return its ``CallToolResult``.

        If the call has a ``retry``, the result may be an ``InputRequiredResult`` instead.
        """
        ...

    async def start_task(self, call: ToolRequest, delay_seconds: float) -> dict[str, Any]:
        """Start a call that outlives its client; return its result if it is quick, else its task.

        Tasks have the format of the extension io.modelcontextprotocol/tasks.
        """
        ...

    async def task(
        self,
        scope: Mapping[str, Any],
        id: str,
        *,
        cancel: bool = False,
        wait: bool = False,
        responses: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Return a task, optionally cancelled or awaited, or raise ``OhJupyterError``.

        ``responses`` are those of the client's person to the task's questions.
        """
        ...


class OfferedContext(Protocol):
    """Resources and prompts that a server offers to the people at its clients.

    ``scope`` is the ASGI scope of the request. An ``OhJupyterError`` becomes one of the protocol.
    """

    @property
    def has_apps(self) -> bool:
        """Whether there are resources of MCP Apps, and tools that refer to them."""
        ...

    @property
    def resource_templates(self) -> list[dict[str, Any]]:
        """Templates of addresses, as in ``ResourceTemplate``."""
        ...

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """Descriptions of the prompts, as in ``Prompt``."""
        ...

    async def list_resources(self, scope: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List resources, as in ``Resource``."""
        ...

    async def read_resource(self, scope: Mapping[str, Any], uri: str) -> list[dict[str, Any]]:
        """Return the contents of a resource, as in ``ReadResourceResult``."""
        ...

    async def prompt(
        self, scope: Mapping[str, Any], name: str, arguments: dict[str, str]
    ) -> dict[str, Any]:
        """Return a ``GetPromptResult``."""
        ...


class ChangeBus:
    """Passes events to listeners; implements the SDK's ``SubscriptionBus`` in major 2."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[Any], None]] = {}

    def __len__(self) -> int:
        """Return the number of listeners."""
        return len(self._listeners)

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Add a listener; return a function that removes it."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    async def publish(self, event: Any) -> None:
        """Pass an event to all listeners."""
        for listener in list(self._listeners.values()):
            listener(event)
        await anyio.lowlevel.checkpoint()

    async def follow(self, notify: Callable[[], Awaitable[None]]) -> None:
        """Notify one session of every change until cancelled."""
        send, receive = anyio.create_memory_object_stream[Any](1)

        def changed(event: Any) -> None:
            with suppress(anyio.WouldBlock):  # one pending notification is enough
                send.send_nowait(event)

        unsubscribe = self.subscribe(changed)
        try:
            with send, receive:
                async for _ in receive:
                    await notify()
        finally:
            unsubscribe()
