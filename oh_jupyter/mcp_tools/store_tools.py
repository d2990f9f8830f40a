"""The file store as a tool: list it, and copy files between it and the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result, failure, of_own_tool, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, Command, McpTool, command_tool
from oh_jupyter.mcp_tools.variable_content import HINT
from oh_jupyter.operations.store import AgentDeleteFromStore, CopyWithStore, ListStore


def store_tool(kernel: Kernel) -> McpTool:
    """Return the tool on the file store of a kernel's runtime."""
    store = StoreCommands(kernel)
    return command_tool(
        "store",
        "The person's file store (local, S3, ...). list: a folder of it. put: copy the workspace's "
        "file to path. get: copy path to the workspace's file. delete: path.",
        {
            "list": Command(store.list, "read"),
            "put": Command(store.copy),
            "get": Command(store.copy),
            "delete": Command(store.delete),
        },
        path={"type": "string", "description": "Path in the store."},
        file={"type": "string", "description": f"File or folder in the workspace; put: {HINT}."},
    )


@dataclass(frozen=True)
class StoreCommands:
    """The commands on the store."""

    _kernel: Kernel

    async def list(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List a folder."""
        listing = await self._kernel.ask(ListStore(arguments.get("path", "")))
        return result(text("\n".join(listing.entries) or "(empty)"))

    async def copy(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Copy between the store and the workspace."""
        if fault := _missing(arguments, "path", "file"):
            return failure(fault)
        direction, path, file = (arguments[name] for name in ("command", "path", "file"))
        asked = self._kernel.ask(CopyWithStore(direction, path, file))
        return of_own_tool(await asked)

    async def delete(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Delete a file or folder of the store."""
        if fault := _missing(arguments, "path"):
            return failure(fault)
        observation = await self._kernel.ask(AgentDeleteFromStore(arguments["path"]))
        return of_own_tool(observation)


def _missing(arguments: dict[str, Any], *names: str) -> str:
    """Return which argument a command lacks, or ""."""
    missing = next((name for name in names if not arguments.get(name)), None)
    return "" if missing is None else f"store: {arguments['command']} needs {missing}."
