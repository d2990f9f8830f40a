"""Tools by name: agent skills and added sources, called as ``MCPAction``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.background import Watchers
from oh_jupyter.events import ErrorObservation, MCPAction, MCPObservation, Observation


@dataclass(frozen=True)
class Tool:
    """A tool; ``call`` returns an MCP ``CallToolResult`` as JSON-ready data."""

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = field(repr=False)


ToolSource = Callable[[], Iterable[Tool]]
"""Lists the current tools of one kind; called for every use."""


class ToolRegistry:
    """All tools of a runtime; ``version`` grows with every change."""

    def __init__(self, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._in_thread = in_thread
        self._sources: dict[str, ToolSource] = {}
        self._watchers: Watchers[[]] = Watchers()
        self.version = 0

    def changed(self) -> None:
        """Record that a source's tools have changed; from any thread."""
        self.version += 1
        self._watchers.tell()

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Subscribe on the thread that makes the changes; returns the unsubscriber."""
        return self._watchers.add(callback)

    def add(self, name: str, source: ToolSource) -> None:
        """Add or replace a source of tools such as ``skills``."""
        self._sources[name] = source
        self.changed()

    def remove(self, name: str) -> None:
        """Remove a source if it exists."""
        self._sources.pop(name, None)
        self.changed()

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name; the source added first wins."""
        tools: dict[str, Tool] = {}
        for source in list(self._sources.values()):
            for tool in source():
                tools.setdefault(tool.name, tool)
        return tools

    async def call(self, action: MCPAction) -> Observation:
        """Call a tool; ``timeout`` ends the wait, not the work of a thread."""
        tools = await self._in_thread(self.tools)
        tool = tools.get(action.name)
        if tool is None:
            from difflib import get_close_matches

            close = get_close_matches(action.name, tools, n=3, cutoff=0.5)
            known = f"The closest are: {', '.join(close)}." if close else ""
            known = known or f"Tools: {', '.join(tools) or 'none'}."
            return ErrorObservation(f"There is no tool {action.name!r}. {known}")
        try:
            async with asyncio.timeout(action.timeout):
                result = await tool.call(action.arguments)
        except TimeoutError:
            message = f"The tool {action.name!r} did not answer within {action.timeout} seconds."
            result = {"isError": True, "error": message, "content": []}
        content = json.dumps(result, ensure_ascii=False)
        return MCPObservation(
            content,
            name=action.name,
            arguments=action.arguments,
            outcome="failed" if result.get("isError") else "done",
        )


def skill_tools(
    in_thread: Callable[..., Awaitable[dict[str, Any]]], changed: Callable[[], None] = lambda: None
) -> ToolSource:
    """Return the agent skills as a source of tools; changes call ``changed``."""
    watched = False

    def tools() -> Iterable[Tool]:
        nonlocal watched
        from oh_jupyter.schema import parameters_schema, summary
        from oh_jupyter.skills import available, call_skill, on_change

        if not watched:
            watched = True
            on_change(changed)
        for name, function in available().items():

            def call(
                arguments: dict[str, Any],
                name: str = name,
                function: Callable[..., Any] = function,
            ) -> Awaitable[dict[str, Any]]:
                return in_thread(call_skill, name, function, arguments)

            yield Tool(name, summary(function), parameters_schema(function), call)

    return tools
