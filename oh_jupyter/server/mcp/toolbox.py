"""Tools, and the box that they are in: what can be listed and called, whoever carries it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from tornado import web

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.server.http_errors import reason_of
from oh_jupyter.server.mcp.results import Result, bounded, failure

logger = logging.getLogger(__name__)

_META = {"anthropic/alwaysLoad": True}
"""Otherwise Claude Code shows its model the names alone, to be searched for first."""

skills_shown: ContextVar[bool] = ContextVar("skills_shown", default=False)
"""Whether agent skills are listed; a session runs in the context of the request that began it."""


class Caller(Protocol):
    """Who calls a tool; ``actor`` is what the event log tells of them."""

    @property
    def actor(self) -> Mapping[str, str]:
        """Who it is, as far as that is known."""
        ...

    @property
    def principal(self) -> str:
        """Whose tasks are shown to them."""
        ...

    async def allowed(self, action: str, resource: str) -> bool:
        """Ask Jupyter's authorizer for an action such as execute on a resource such as kernels."""
        ...


@dataclass(frozen=True)
class Tool:
    """Something that an agent can call.

    Attributes:
        hints: MCP's annotations, such as ``readOnlyHint``.
        rest: How an agent gets what is left out of too long a result; "" if nothing is.
        wire: A tool that is described already, as it is sent; the rest is then not.
        listed: Whether agents are told of it; others may go on calling it.
    """

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[[dict[str, Any], Caller], Awaitable[Result]]
    hints: Mapping[str, bool] = field(default_factory=dict)
    rest: str = "Ask for less at a time."
    wire: Mapping[str, Any] | None = None
    listed: bool = True

    def to_wire(self) -> dict[str, Any]:
        """The ``Tool`` of the MCP specification, as JSON."""
        if self.wire is not None:
            return {**self.wire, "name": self.name}
        listed: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema,
            "_meta": _META,
        }
        if self.hints:
            listed["annotations"] = dict(self.hints)
        return listed


class Source(Protocol):
    """Where tools come from."""

    async def tools(self, start: bool) -> list[Tool]:
        """List the tools that there are now; ``start`` what is needed to know them."""
        ...


class Closable(Protocol):
    """What has something going on in the background."""

    def close(self) -> None:
        """End it."""
        ...


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema of arguments: the names of those that must be there, and all by name."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class Toolbox:
    """The tools of several sources, under names that are theirs alone.

    Attributes:
        fixed: Those that are always there, by name.
    """

    def __init__(
        self,
        fixed: Iterable[Tool],
        *sources: Source,
        kernel: Closable | None = None,
        around_call: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Collect tools that are always there, and sources of others that are asked each time.

        Nothing takes the names of the fixed ones; the kernel is closed with the box.
        """
        self._around_call = around_call
        self._kernel = kernel
        self.fixed = {tool.name: tool for tool in fixed}
        self._sources = sources

    def close(self) -> None:
        """End what goes on in the background."""
        if self._kernel is not None:
            self._kernel.close()

    async def tools(self, start: bool = False) -> list[Tool]:
        """All tools, ours first; ``start`` what is needed to know them all."""
        found = {name: tool for name, tool in self.fixed.items() if tool.listed}
        for source in self._sources:
            for tool in await source.tools(start):
                if tool.name not in self.fixed:
                    found[tool.name] = tool
        return list(found.values())

    async def call(self, name: str, arguments: dict[str, Any], caller: Caller) -> Result:
        """Call a tool; what goes wrong is a result, too, for the agent to read."""
        try:
            tool = self.fixed.get(name)
            if tool is None:
                others = {tool.name: tool for tool in await self.tools(start=True)}
                tool = others.get(name)
                if tool is None:
                    return failure(f"There is no tool {name!r}. Tools: {', '.join(others)}")
            problem = _problem(arguments, tool.schema)
            if problem:
                return failure(f"{name}: {problem}")
            async with self._around_call():
                found = await tool.call(arguments, caller)
            return bounded(found, tool.rest) if tool.rest else found
        except OhJupyterError as refused:
            return failure(str(refused))
        except web.HTTPError as refused:  # of the server's contents manager
            return failure(f"{name}: {reason_of(refused)}")
        except Exception as problem:
            logger.exception("The tool %s failed", name)
            return failure(
                f"Internal error in {name!r}: {type(problem).__name__}: {problem}. The server goes "
                "on; its log has the details."
            )


def _problem(arguments: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What is wrong with arguments, or ""."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    error = best_match(Draft202012Validator(wanted).iter_errors(arguments))
    if error is None:
        return ""
    where = ".".join(str(part) for part in error.absolute_path)
    return f"argument {where!r}: {error.message}" if where else str(error.message)
