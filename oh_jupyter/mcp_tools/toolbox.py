"""Tools, those with several commands among them, and the toolbox that lists and calls them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events.actor import Actor, missing_scope
from oh_jupyter.mcp_tools.kernel import current_notes
from oh_jupyter.mcp_tools.results import Result, bounded, failure, text, with_bounded_pictures


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


logger = logging.getLogger(__name__)

INSTRUCTIONS = (
    "These tools work in a running Jupyter kernel that you share with a person, who sees what you "
    "do. Cells run with run_ipython use the person's variables, the shell of run keeps its state, "
    "edits can be undone. Begin with read_cells and variables. Experiment with run_ipython; insert "
    "cells for what the person will keep. A content, source or new_str of variable:NAME is the "
    "text of that variable. Work on copies of the person's variables, and restart the kernel only "
    "if asked. Run long cells with wait, and look at them meanwhile. A pending "
    "call may be waiting for the person's approval; if it is rejected, ask what the person wants."
)
"""Sent to each client, for its model."""

_META = {"anthropic/alwaysLoad": True}
"""Makes Claude Code show its model the whole tools; otherwise it must search for them by name."""

_SHOWN_KEYWORDS = ("type", "properties", "required")

listed_scopes: ContextVar[tuple[str, ...] | None] = ContextVar("listed_scopes", default=None)
"""Scopes of the tools that are listed, None for all; see ``oh_jupyter.events.actor``."""


class Caller(Protocol):
    """Caller of a tool."""

    @property
    def actor(self) -> Actor:
        """The caller for the event log, as far as known."""
        ...

    @property
    def principal(self) -> str:
        """Owner of the caller's tasks."""
        ...

    @property
    def scopes(self) -> tuple[str, ...] | None:
        """Scopes of the caller's token, or None without limits."""
        ...

    @property
    def only_notebook(self) -> str:
        """Path of the only notebook that the caller's token allows, or ""."""
        ...

    async def allowed(self, action: str, resource: str) -> bool:
        """Ask Jupyter's authorizer for an action such as execute on a resource such as kernels."""
        ...


@dataclass(frozen=True)
class McpTool:
    """A tool for agents."""

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[[dict[str, Any], Caller], Awaitable[Result]]
    hints: Mapping[str, bool] = field(default_factory=dict)  # MCP's annotations
    rest: str = "Ask for less at a time."  # how to get the rest of a long result; "" if unlimited
    wire: Mapping[str, Any] | None = None  # complete description of a foreign tool
    listed: bool = True  # an unlisted tool can still be called
    scope: str = "execute"  # that a scoped token needs to see it
    scope_of: Callable[[dict[str, Any]], str] | None = None  # to call it with these arguments
    title: str = ""  # for people; "" derives it from the name
    ui: Mapping[str, Any] | None = None  # metadata of MCP Apps; lists it to clients that show them

    @property
    def is_only_for_apps(self) -> bool:
        """Whether only MCP Apps call it, not models."""
        return self.ui is not None and self.ui.get("visibility") == ["app"]

    def to_wire(self) -> dict[str, Any]:
        """Return the ``Tool`` of the MCP specification as JSON."""
        if self.wire is not None:
            return {**self.wire, "name": self.name}
        described: dict[str, Any] = {
            "name": self.name,
            "title": self.title or self.name.replace("_", " ").capitalize(),
            "description": self.description,
            "inputSchema": _shown(self.schema),
            "_meta": _META if self.ui is None else {**_META, "ui": dict(self.ui)},
        }
        return {**described, "annotations": dict(self.hints)} if self.hints else described


def _shown(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a schema for agents, which pay for each character: what is checked may be omitted."""
    return {name: value for name, value in arguments.items() if value and name in _SHOWN_KEYWORDS}


class Source(Protocol):
    """Source of tools that change."""

    async def tools(self, start: bool) -> list[McpTool]:
        """List the current tools; ``start`` what is needed to know them."""
        ...


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON schema of arguments from the required names and the schemas by name."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class Toolbox:
    """Fixed tools by name, and those of a source that cannot take their names."""

    def __init__(
        self,
        fixed: Iterable[McpTool],
        source: Source,
        around_call: Callable[[str], AbstractAsyncContextManager[None]],
        place: str,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Collect tools; each call runs inside ``around_call`` of the tool's name.

        ``place`` is where they are executed, such as "server".
        """
        self.fixed = {tool.name: tool for tool in fixed}
        self._source = source
        self._around_call = around_call
        self._place = place
        self.close = on_close

    async def tools(self, start: bool = False, *, has_apps: bool = False) -> list[McpTool]:
        """Return all tools, fixed ones first; ``start`` what is needed to know them all.

        ``has_apps`` adds those that a client with MCP Apps gets as well.
        """
        tools = {
            name: tool
            for name, tool in self.fixed.items()
            if tool.listed or (has_apps and tool.ui is not None)
        }
        for tool in await self._source.tools(start):
            if tool.name not in self.fixed:
                tools[tool.name] = tool
        scopes = listed_scopes.get()
        return [tool for tool in tools.values() if scopes is None or tool.scope in scopes]

    async def call(self, name: str, arguments: dict[str, Any], caller: Caller) -> Result:
        """Call a tool; errors become results for the agent to read."""
        try:
            tool = self.fixed.get(name)
            if tool is None:
                others = {tool.name: tool for tool in await self.tools(start=True)}
                tool = others.get(name)
                if tool is None:
                    return failure(f"There is no tool {name!r}. Tools: {', '.join(others)}")
            scope = tool.scope if tool.scope_of is None else tool.scope_of(arguments)
            for needed in {tool.scope, scope}:
                if caller.scopes is not None and needed not in caller.scopes:
                    return failure(f"{name}: {missing_scope(needed, caller.scopes)}")
            if caller.only_notebook and "notebook" in tool.schema.get("properties", ()):
                if not _is_notebook(arguments.get("notebook"), caller.only_notebook):
                    reason = f"The token allows only the notebook {caller.only_notebook}"
                    return failure(f"{name}: {reason}")
                arguments = {**arguments, "notebook": caller.only_notebook}
            if fault := _argument_fault(arguments, tool.schema):
                return failure(f"{name}: {fault}")
            notes: list[str] = []
            current_notes.set(notes)
            async with self._around_call(name):
                result = await tool.call(arguments, caller)
            shown = bounded(result, tool.rest) if tool.rest else result
            shown = await with_bounded_pictures(shown)
            return {**shown, "content": [*shown["content"], *(text(f"[{each}]") for each in notes)]}
        except OhJupyterError as error:
            return failure(str(error))
        except Exception as error:
            logger.exception("The tool %s failed", name)
            return failure(
                f"Internal error in {name!r}: {type(error).__name__}: {error}. The "
                f"{self._place} still runs; its log has the details."
            )


def _is_notebook(name: object, path: str) -> bool:
    """Return whether a name, None for the default, means the notebook of a path."""
    end = str(path if name is None else name).strip("/")
    return bool(end) and PurePosixPath(path).match(end)


def _argument_fault(arguments: dict[str, Any], expected: dict[str, Any]) -> str:
    """Describe the worst fault of the arguments, "" if there is none."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(expected).iter_errors(arguments))
    if error is None:
        return ""
    where = ".".join(str(part) for part in error.absolute_path)
    return f"argument {where!r}: {error.message}" if where else str(error.message)
