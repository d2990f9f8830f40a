"""Operations of the control channel that the server's MCP tools are made of."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from oh_jupyter.cells.outputs import CellOutput, kept_output
from oh_jupyter.errors import WireError
from oh_jupyter.events import CmdRunAction, IPythonRunCellAction
from oh_jupyter.events.json import parse_json
from oh_jupyter.events.wire import runnable_from_wire
from oh_jupyter.plugins import JupyterPlugin
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.mcp import McpTool, parse_servers

__all__ = ["list_tools", "peek", "run_cell", "tools_changed", "update_mcp_server"]

Answer = tuple[dict[str, Any], list[bytes]]


async def list_tools(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    """List the tools that ``call_tool_mcp`` calls, as MCP lists them.

    Args:
        runtime: The runtime.
        content: ``taken``: names that the server's own tools have.
        buffers: None.

    Returns:
        The list, as JSON; ``skills`` names those that are no tools of an MCP server.
    """
    executor = runtime.executor
    await executor.mcp.begin()
    version = executor.tools.version
    tools = await executor.in_thread(executor.tools.tools)
    own = [tool for tool in tools.values() if not isinstance(tool, McpTool)]
    taken = {*content.get("taken", ()), *(tool.name for tool in own)}
    listing = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in own
    ]
    listing += executor.mcp.listed(taken)
    skills = [tool.name for tool in own]
    return {"status": "ok", "tools": version, "skills": skills}, [json.dumps(listing).encode()]


async def tools_changed(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    """Wait until there are other tools.

    Args:
        runtime: The runtime.
        content: ``known``: number of the tools that are known; ``wait``: seconds to wait at most.
        buffers: None.

    Returns:
        ``tools``: number of the tools that there are.
    """
    tools = runtime.executor.tools
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def note() -> None:
        loop.call_soon_threadsafe(changed.set)

    undo = tools.on_change(note)
    try:
        if tools.version == content.get("known"):
            async with asyncio.timeout(float(content.get("wait", 0))):
                await changed.wait()
    except TimeoutError:
        pass
    finally:
        undo()
    return {"status": "ok", "tools": tools.version}, []


async def peek(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    """Look at what a command or cell that runs has put out so far.

    Args:
        runtime: The runtime.
        content: ``kind``: type of the Action.
        buffers: None.

    Returns:
        ``text``: its last lines, "" if there are none.
    """
    executor, kind, text = runtime.executor, content.get("kind"), ""
    cells = JupyterPlugin.name in executor.plugins.names
    if kind == CmdRunAction.kind:
        text = (await executor.shell()).peek()
    elif kind == IPythonRunCellAction.kind and cells:
        text = executor.plugins.jupyter().peek()
    return {"status": "ok", "text": text}, []


async def update_mcp_server(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    """Have those MCP servers run behind the runtime that are given, and no others.

    Args:
        runtime: The runtime.
        content: Nothing more.
        buffers: The servers, as a JSON array.

    Returns:
        ``router_error_log``: which do not start, and why.

    Raises:
        WireError: It is no such array.
    """
    servers = parse_servers(_json(buffers))
    return {"status": "ok", "router_error_log": await runtime.executor.mcp.sync(servers)}, []


async def run_cell(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    """Carry out a ``run_ipython`` Action, and tell its outputs as a notebook stores them.

    Args:
        runtime: The runtime.
        content: Nothing more.
        buffers: ``{"action": {...}}`` as JSON.

    Returns:
        The Observation, ``outputs`` and ``execution_count``, as JSON.

    Raises:
        WireError: It is no such Action.
    """
    data = _json(buffers)
    action = runnable_from_wire(data.get("action") if isinstance(data, dict) else data)
    kept: list[CellOutput] = []
    kept_output.set(kept)
    observation = await runtime.executor.run_action(action, action.source or "agent", "agent")
    found = {
        "observation": json.loads(runtime.events.encoded(observation)),
        "outputs": kept[-1].notebook_outputs if kept else [],
        "execution_count": kept[-1].execution_count if kept else None,
    }
    version = runtime.executor.tools.version
    return {"status": "ok", "tools": version}, [json.dumps(found).encode()]


def _json(buffers: list[bytes]) -> Any:
    if not buffers:
        raise WireError("The request has no body", "body")
    return parse_json(buffers[0])
