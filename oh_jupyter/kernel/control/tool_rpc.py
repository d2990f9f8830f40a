"""Operations on the tools that are called by name: agent skills, and those of MCP servers."""

from __future__ import annotations

import asyncio
import json

from oh_jupyter.kernel.control.rpc import Reply, Request, operation
from oh_jupyter.runtime.mcp import McpTool, parse_servers

__all__: list[str] = []


@operation("skills")
async def _skills(request: Request) -> Reply:
    from oh_jupyter.skills import registry

    found = await request.runtime.executor.in_thread(registry)
    listing = [
        {"name": name, "signature": skill.signature, "docstring": skill.docstring}
        for name, skill in found.items()
    ]
    return Reply({"skills": listing})


@operation("tools")
async def _list_tools(request: Request) -> Reply:
    """List tools as MCP does, skills if ``skills`` says so; ``taken`` are names of the server's."""
    executor = request.runtime.executor
    await executor.mcp.begin()
    version = executor.tools.version
    wanted = request.fields.get("skills", True)
    tools = await executor.in_thread(executor.tools.tools) if wanted else {}
    own = [tool for tool in tools.values() if not isinstance(tool, McpTool)]
    taken = {*request.fields.get("taken", ()), *(tool.name for tool in own)}
    listing = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in own
    ]
    listing += executor.mcp.listed(taken)
    skills = [tool.name for tool in own]
    return Reply({"tools": version, "skills": skills}, json.dumps(listing).encode())


@operation("tools_changed")
async def _tools_changed(request: Request) -> Reply:
    """Wait up to ``wait`` seconds for other tools than those of the version ``known``."""
    tools = request.runtime.executor.tools
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def note() -> None:
        loop.call_soon_threadsafe(changed.set)

    unsubscribe = tools.on_change(note)
    try:
        if tools.version == request.fields.get("known"):
            async with asyncio.timeout(float(request.fields.get("wait", 0))):
                await changed.wait()
    except TimeoutError:
        pass
    finally:
        unsubscribe()
    return Reply({"tools": tools.version})


@operation("update_mcp_server")
async def _update_mcp_server(request: Request) -> Reply:
    """Have the MCP servers of the body run and no others; tell which do not start, and why."""
    servers = parse_servers(request.json())
    return Reply({"router_error_log": await request.runtime.executor.mcp.sync(servers)})
