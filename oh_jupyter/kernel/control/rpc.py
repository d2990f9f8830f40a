"""What can be asked of a runtime through the control channel.

An operation gets the content of the request and its buffers, and returns the content of the
reply and its buffers. It runs on the runtime thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from oh_jupyter.errors import EventNotFoundError, WireError
from oh_jupyter.events.encoded import encode
from oh_jupyter.events.json import parse_json
from oh_jupyter.events.wire import runnable_from_wire, to_wire
from oh_jupyter.kernel.control.file_rpc import FILE_OPERATIONS
from oh_jupyter.kernel.control.tool_rpc import (
    list_tools,
    peek,
    run_cell,
    tools_changed,
    update_mcp_server,
)
from oh_jupyter.plugins import VSCodePlugin
from oh_jupyter.runtime import Runtime, list_directory

__all__ = ["Answer", "Operation", "operations"]

Answer = tuple[dict[str, Any], list[bytes]]
"""Fields of a reply, and its buffers."""

Operation = Callable[[dict[str, Any], list[bytes]], Awaitable[Answer]]
"""Takes the fields of a request and its buffers."""


def operations(runtime: Runtime) -> dict[str, Operation]:
    """The operations on a runtime.

    Args:
        runtime: The runtime.

    Returns:
        The operations by name.
    """
    return {
        "execute_action": partial(_execute_action, runtime),
        "list_files": partial(_list_files, runtime),
        "status": partial(_status, runtime),
        "events": partial(_events, runtime),
        "event": partial(_event, runtime),
        **{name: partial(operate, runtime) for name, operate in FILE_OPERATIONS.items()},
        "skills": partial(_skills, runtime),
        "page": partial(_page, runtime),
        "confirmations": partial(_confirmations, runtime),
        "confirm": partial(_confirm, runtime),
        "tools": partial(list_tools, runtime),
        "tools_changed": partial(tools_changed, runtime),
        "peek": partial(peek, runtime),
        "update_mcp_server": partial(update_mcp_server, runtime),
        "run_cell": partial(run_cell, runtime),
        "vscode": partial(_vscode, runtime),
    }


async def _execute_action(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    action = runnable_from_wire(_parsed(buffers))
    observation = await runtime.executor.run_action(action, action.source or "agent", "agent")
    tools = runtime.executor.tools.version
    return {"status": "ok", "tools": tools}, [runtime.events.encoded(observation)]


async def _list_files(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    executor = runtime.executor
    names = await executor.in_thread(list_directory, content.get("path"), executor.workspace_dir)
    return {"status": "ok", "names": names}, []


async def _status(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    return {"status": "ok", "runtime": runtime.status()}, []


async def _events(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    from oh_jupyter.kernel.control.broadcast import clipped

    start = content.get("start_id", 0)
    if content.get("wait"):
        await _event_recorded(runtime, start, float(content["wait"]))
    found = await runtime.executor.in_thread(
        runtime.events.search, start=start, limit=content.get("limit")
    )
    wires = [to_wire(event) for event in found]
    listing = wires if content.get("whole") else [clipped(wire) for wire in wires]
    return {"status": "ok"}, [encode(listing)]


async def _event_recorded(runtime: Runtime, id: int, seconds: float) -> None:
    """Wait until the log has an event of that id, or for so many seconds."""
    loop, recorded = asyncio.get_running_loop(), asyncio.Event()
    unsubscribe = runtime.events.subscribe(lambda _: loop.call_soon_threadsafe(recorded.set))
    try:
        if runtime.events.latest_id < id:
            async with asyncio.timeout(seconds):
                await recorded.wait()
    except TimeoutError:
        pass
    finally:
        unsubscribe()


async def _vscode(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    plugins = runtime.executor.plugins
    plugin = await plugins.find(VSCodePlugin.name)
    if not isinstance(plugin, VSCodePlugin):
        problem = plugins.problems.get(VSCodePlugin.name)
        return {"status": "ok", "token": None, "url": None, "problem": problem}, []
    token, url = plugin.vscode_connection_token, plugin.url()
    return {"status": "ok", "token": token, "url": url, "problem": None}, []


async def _event(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    number = content.get("id", -1)
    try:
        event = await runtime.executor.in_thread(runtime.events.get_event, number)
    except FileNotFoundError:
        raise EventNotFoundError(
            f"There is no event {number}; the last one is {runtime.events.latest_id}"
        ) from None
    return {"status": "ok"}, [encode(to_wire(event))]


async def _skills(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    from oh_jupyter.skills import registry

    found = await runtime.executor.in_thread(registry)
    listing = [
        {"name": name, "signature": skill.signature, "docstring": skill.docstring}
        for name, skill in found.items()
    ]
    return {"status": "ok", "skills": listing}, []


async def _page(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    """What the browser showed last: the observation of the last step, trees left out."""
    page = runtime.executor.last_page
    if page is None:
        raise EventNotFoundError("No page was visited yet. Visit one with a browse action")
    return {"status": "ok"}, [encode(to_wire(page))]


async def _confirmations(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    waiting = [
        {"id": id, "message": entry.action.message, "reason": entry.reason}
        for id, entry in runtime.executor.confirmations.waiting.items()
    ]
    return {"status": "ok", "waiting": waiting}, []


async def _confirm(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    if not isinstance(content.get("approve"), bool):
        raise WireError("'approve' must be true or false", "approve")
    runtime.executor.confirmations.resolve(content.get("id", -1), content["approve"])
    return {"status": "ok"}, []


def _parsed(buffers: list[bytes]) -> Any:
    if not buffers:
        raise WireError("The request has no body", "action")
    data = parse_json(buffers[0])
    if not isinstance(data, dict) or not isinstance(data.get("action"), dict):
        raise WireError("The body must be a JSON object with an 'action' object", "action")
    return data["action"]
