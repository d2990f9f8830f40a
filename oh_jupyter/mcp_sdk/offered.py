"""What a server offers, in terms of neither major version, and who hears of changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import anyio.lowlevel


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, with the ASGI scope of the request that brought it.

    ``report_progress`` tells a number that grows and a text; None if the client is not interested.
    """

    name: str
    arguments: dict[str, Any]
    scope: Mapping[str, Any]
    report_progress: Callable[[float, str], Awaitable[None]] | None


class OfferedTools(Protocol):
    """What a server is asked for."""

    async def list_tools(self) -> list[dict[str, Any]]:
        """List the tools; an ``OhJupyterError`` becomes an error of the protocol."""
        ...

    async def call_tool(self, call: ToolCall) -> dict[str, Any]:
        """Carry a call out, and give its ``CallToolResult``."""
        ...

    async def begin_task(self, call: ToolCall, delay_seconds: float) -> dict[str, Any]:
        """Begin a call that outlives its client: its result if it is quick, or its task.

        Tasks are told as the extension io.modelcontextprotocol/tasks does.
        """
        ...

    async def task(
        self, scope: Mapping[str, Any], id: str, *, cancel: bool = False, wait: bool = False
    ) -> dict[str, Any]:
        """Look at a task, cancelled or over if that is asked; ``OhJupyterError`` for none."""
        ...


class ChangeBus:
    """Passes events on to whoever listens; the SDK's ``SubscriptionBus`` where it has one."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[Any], None]] = {}

    def __len__(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Listen, until the function that is returned is called."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    async def publish(self, event: Any) -> None:
        """Tell an event to all."""
        for listener in list(self._listeners.values()):
            listener(event)
        await anyio.lowlevel.checkpoint()

    async def follow(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Tell one session of every change until this is cancelled."""
        send, receive = anyio.create_memory_object_stream[Any](1)

        def changed(event: Any) -> None:
            with suppress(anyio.WouldBlock):  # one that it has not heard of yet will do
                send.send_nowait(event)

        unsubscribe = self.subscribe(changed)
        try:
            with send, receive:
                async for _ in receive:
                    await tell()
        finally:
            unsubscribe()
