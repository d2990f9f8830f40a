"""What a server offers, in terms of neither major version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["OfferedTools", "ToolCall"]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, as it came.

    Attributes:
        name: The tool's name.
        arguments: Its arguments.
        scope: ASGI scope of the request that brought it.
        report_progress: Tells the client a number that grows and a text; None if the client
            does not want to know.
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
