"""The tools that live in the kernel: those of MCP servers behind it, and skills."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from oh_jupyter.errors import ExtensionMissingError
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result, of_observation, text_alone
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool
from oh_jupyter.operations.runtime import Tools

SKILL_PREFIX = "skill_"  # prefix of skills' names: agents may have tools with the same names

skills_listed: ContextVar[bool] = ContextVar("skills_listed", default=False)
"""Whether agent skills are listed; a session runs in the context of its first request."""


@dataclass(frozen=True)
class ToolsInKernel:
    """The tools in the kernel: those of MCP servers behind it, and skills on request.

    Skills have a prefix: one called ``file_editor`` would end the conversation of an agent that
    has its own tool of that name.
    """

    _kernel: Kernel
    _taken: list[str]  # names in use; a tool with one of them is prefixed by its server's name

    async def tools(self, start: bool) -> list[McpTool]:
        """Return the tools; without ``start``, neither start the kernel nor load anything in it."""
        if not (start or self._kernel.is_there):
            self._kernel.note_incomplete_list()
            return []
        asked = Tools(skills=skills_listed.get(), taken=self._taken)
        try:
            listed = await self._kernel.ask(asked, load=start)
        except ExtensionMissingError:
            if start:
                raise
            self._kernel.note_incomplete_list()
            return []
        return [
            self._skill(wire) if wire["name"] in listed.skills else self._tool(wire)
            for wire in listed.tools
        ]

    def _skill(self, wire: dict[str, Any]) -> McpTool:
        return self._tool(wire, prefix=SKILL_PREFIX, rest=McpTool.rest)

    def _tool(self, wire: dict[str, Any], prefix: str = "", rest: str = "") -> McpTool:
        name = str(wire["name"])

        async def call(arguments: dict[str, Any], caller: Caller) -> Result:
            args = {"name": name, "arguments": arguments}
            result = of_observation(await self._kernel.act("call_tool_mcp", args))
            # Unannounced structure would only hide the text from agents.
            return result if "outputSchema" in wire else text_alone(result)

        # The tool's own server checks its arguments and bounds its results.
        description = str(wire.get("description") or "")
        return McpTool(f"{prefix}{name}", description, {}, call, rest=rest, wire=wire)
