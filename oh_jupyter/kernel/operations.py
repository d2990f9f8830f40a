"""What can be asked of a runtime through the control channel.

An operation gets the content of the request and its buffers, and returns the content of the
reply and its buffers. It runs on the runtime thread.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from oh_jupyter.errors import EventNotFoundError, WireError
from oh_jupyter.events.wire import runnable_from_wire, to_wire
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
    }


async def _execute_action(
    runtime: Runtime, content: dict[str, Any], buffers: list[bytes]
) -> Answer:
    action = runnable_from_wire(_parsed(buffers))
    observation = await runtime.executor.run_action(action, action.source or "agent")
    return {"status": "ok"}, [json.dumps(to_wire(observation)).encode()]


async def _list_files(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    executor = runtime.executor
    names = await executor.in_thread(list_directory, content.get("path"), executor.workspace_dir)
    return {"status": "ok", "names": names}, []


async def _status(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    return {"status": "ok", "runtime": runtime.status()}, []


async def _events(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    from oh_jupyter.kernel.broadcast import clipped

    found = await runtime.executor.in_thread(
        runtime.events.search,
        start=content.get("start_id", 0),
        limit=content.get("limit"),
    )
    listing = [clipped(to_wire(event)) for event in found]
    return {"status": "ok"}, [json.dumps(listing).encode()]


async def _event(runtime: Runtime, content: dict[str, Any], buffers: list[bytes]) -> Answer:
    number = content.get("id", -1)
    try:
        event = await runtime.executor.in_thread(runtime.events.get_event, number)
    except FileNotFoundError:
        raise EventNotFoundError(
            f"There is no event {number}; the last one is {runtime.events.latest_id}"
        ) from None
    return {"status": "ok"}, [json.dumps(to_wire(event)).encode()]


def _parsed(buffers: list[bytes]) -> Any:
    if not buffers:
        raise WireError("The request has no body", "action")
    try:
        data = json.loads(buffers[0])
    except ValueError as problem:
        raise WireError(f"The body is not JSON: {problem}", "body") from None
    if not isinstance(data, dict) or not isinstance(data.get("action"), dict):
        raise WireError("The body must be a JSON object with an 'action' object", "action")
    return data["action"]
