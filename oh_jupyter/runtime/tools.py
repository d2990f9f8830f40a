"""Tools by name: the agent skills, and whatever else is added, called as ``MCPAction``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from oh_jupyter.events import ErrorObservation, MCPAction, MCPObservation, Observation

__all__ = ["Tool", "ToolRegistry", "ToolSource", "skill_tools"]


@dataclass(frozen=True)
class Tool:
    """Something that can be called by name.

    Attributes:
        name: Its name, unique in the runtime.
        description: What it does.
        input_schema: A JSON schema of its arguments.
        call: Calls it with arguments and returns an MCP ``CallToolResult`` as JSON-ready
            data.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = field(repr=False)


ToolSource = Callable[[], Iterable[Tool]]
"""Lists the tools of one kind as they are now; asked anew for every call."""


class ToolRegistry:
    """All tools of a runtime.

    Attributes:
        version: A higher number whenever there are other tools than before.
    """

    def __init__(self, in_thread: Callable[..., Awaitable[Any]]) -> None:
        """Make an empty registry.

        Args:
            in_thread: Runs blocking code beside the loop; listing tools may import them.
        """
        self._in_thread = in_thread
        self._sources: dict[str, ToolSource] = {}
        self._watchers: list[Callable[[], None]] = []
        self.version = 0

    def changed(self) -> None:
        """Take note that a source has other tools than before; from any thread."""
        self.version += 1
        for callback in list(self._watchers):
            callback()

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have something done whenever there are other tools than before.

        Args:
            callback: Called on the thread that changed them.

        Returns:
            What ends that.
        """
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def add(self, name: str, source: ToolSource) -> None:
        """Add tools, or replace those that were added under the same name.

        Args:
            name: What they are called together, such as ``skills``.
            source: Lists them.
        """
        self._sources[name] = source
        self.changed()

    def remove(self, name: str) -> None:
        """Take tools away again; it is no error if they are not there.

        Args:
            name: The name under which they were added.
        """
        self._sources.pop(name, None)
        self.changed()

    def tools(self) -> dict[str, Tool]:
        """List all tools.

        Returns:
            The tools by name; where two have the same, that of the source added first.
        """
        found: dict[str, Tool] = {}
        for source in list(self._sources.values()):
            for tool in source():
                found.setdefault(tool.name, tool)
        return found

    async def call(self, action: MCPAction) -> Observation:
        """Call a tool.

        Args:
            action: Its name and arguments; ``timeout`` ends the wait for it, not what it
                does in a thread.

        Returns:
            Its result as JSON text; an ``ErrorObservation`` if there is no such tool.
        """
        tools = await self._in_thread(self.tools)
        tool = tools.get(action.name)
        if tool is None:
            close = get_close_matches(action.name, tools, n=3, cutoff=0.5)
            known = f"The closest are: {', '.join(close)}." if close else ""
            known = known or f"Tools: {', '.join(tools) or 'none'}."
            return ErrorObservation(f"There is no tool {action.name!r}. {known}")
        try:
            async with asyncio.timeout(action.timeout):
                result = await tool.call(action.arguments)
        except TimeoutError:
            said = f"The tool {action.name!r} did not answer within {action.timeout} seconds."
            result = {"isError": True, "error": said, "content": []}
        content = json.dumps(result, ensure_ascii=False)
        return MCPObservation(content, name=action.name, arguments=action.arguments)


def skill_tools(
    in_thread: Callable[..., Awaitable[dict[str, Any]]], changed: Callable[[], None] = lambda: None
) -> ToolSource:
    """Offer the agent skills as tools.

    Args:
        in_thread: Runs blocking code beside the loop.
        changed: Called when there are other skills than were listed.

    Returns:
        The source; skills that are added later are among its tools.
    """
    watched = False

    def tools() -> Iterable[Tool]:
        nonlocal watched
        from oh_jupyter.skills import available, call_skill, on_change
        from oh_jupyter.skills.signatures import schema_of, summary_of

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

            yield Tool(name, summary_of(function), schema_of(function), call)

    return tools
