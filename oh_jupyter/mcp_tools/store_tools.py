"""The file store as a tool: list it, and copy files between it and the workspace."""

from __future__ import annotations

import json
from typing import Any

from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result, failure, of_observation, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema

_COMMANDS = ("list", "put", "get", "delete")
_MISSING = "store: {} needs {}."


def store_tool(kernel: Kernel) -> McpTool:
    """Return the tool on the file store of a kernel's runtime."""

    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        command, path = arguments["command"], arguments.get("path", "")
        if command == "list":
            reply = await kernel.request("list_store", {"path": path})
            return result(text("\n".join(reply.fields["entries"]) or "(empty)"))
        if not await caller.allowed("execute", "kernels"):
            return failure("You may not change the store of this server.")
        if not path:
            return failure(_MISSING.format(command, "path"))
        if command == "delete":
            reply = await kernel.request("agent_delete_from_store", {"path": path})
            return of_observation(json.loads(reply.body or b"{}"))
        if not arguments.get("file"):
            return failure(_MISSING.format(command, "file"))
        fields = {"direction": command, "path": path, "file": arguments["file"]}
        reply = await kernel.request("copy_with_store", fields)
        return of_observation(json.loads(reply.body or b"{}"))

    return McpTool(
        "store",
        "The person's file store (local, S3, ...). list: a folder of it. put: copy the workspace's "
        "file to path. get: copy path to the workspace's file. delete: path.",
        schema(
            "command",
            command={"type": "string", "enum": list(_COMMANDS), "description": "The command."},
            path={"type": "string", "description": "Path in the store."},
            file={"type": "string", "description": "File or folder in the workspace."},
        ),
        call,
        {"destructiveHint": True},
        scope="read",
        scope_of=lambda given: "read" if given.get("command") == "list" else "execute",
    )
