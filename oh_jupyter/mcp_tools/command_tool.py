"""Tools with several commands, each with the permission that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oh_jupyter.mcp_tools.results import Result, failure
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema


@dataclass(frozen=True)
class Command:
    """A command of a tool, which reads or executes something in a kernel."""

    work: Callable[[dict[str, Any], Caller], Awaitable[Result]]
    scope: str = "execute"


def command_tool(
    name: str,
    description: str,
    commands: Mapping[str, Command],
    *,
    default: str = "",
    **properties: dict[str, Any],
) -> McpTool:
    """Return a tool whose argument ``command`` chooses what it does.

    Args:
        name: Name of the tool.
        description: Its description, which names the commands.
        commands: The commands by name.
        default: Name of the default command; "" requires one.
        properties: Schemas of the other arguments.
    """

    def chosen(arguments: dict[str, Any]) -> Command | None:
        return commands.get(arguments.get("command", default))

    def scope_of(arguments: dict[str, Any]) -> str:
        command = chosen(arguments)
        return "read" if command is None else command.scope

    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        command = chosen(arguments)
        assert command is not None  # the schema has been checked
        if not await caller.allowed(command.scope, "kernels"):
            return failure(f"You may not {command.scope} kernels of this server.")
        return await command.work(arguments, caller)

    choice: dict[str, Any] = {"type": "string", "enum": list(commands)}
    if default:
        choice["default"] = default
    else:
        choice["description"] = "The command."
    required = () if default else ("command",)
    return McpTool(
        name,
        description,
        schema(*required, command=choice, **properties),
        call,
        {"destructiveHint": True},
        scope="read",
        scope_of=scope_of,
    )
