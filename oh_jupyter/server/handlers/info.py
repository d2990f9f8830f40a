"""``alive``, ``server_info``, ``notebooks`` and ``openapi.yaml``."""

from __future__ import annotations

import asyncio
import json
import time
from functools import cache
from pathlib import Path

import psutil

from oh_jupyter._version import __version__
from oh_jupyter.errors import KernelError
from oh_jupyter.operations.runtime import Status
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import READ_ACTIONS, RouteTable

OPENAPI = Path(__file__).parent.with_name("openapi.yaml")  # description of the REST interface
STATUS_TIMEOUT_SECONDS = 1.0  # time that a busy kernel gets to report its status

routes = RouteTable()
server_routes = RouteTable()


@routes.add("GET /alive", READ_ACTIONS, "alive")
async def alive(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Report that the server responds and has the kernel; start and load nothing."""
    await _check(handler, kernel_id)
    handler.finish_json({"status": "ok"})


async def _check(handler: OhHandler, kernel_id: str | None) -> None:
    await handler.check_kernel(kernel_id)
    if kernel_id is not None:
        handler.state.router.check(kernel_id)


@server_routes.add("GET /notebooks", ("read", "sessions"), "listNotebooks")
async def notebooks(handler: OhHandler) -> None:
    """List path and kernel of each open notebook; one without a kernel is not open."""
    notebooks = await handler.open_notebooks()
    handler.finish_json([{"path": each.path, "kernel_id": each.kernel_id} for each in notebooks])


@routes.add("GET /server_info", READ_ACTIONS, "serverInfo")
async def server_info(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Send uptime, idle time and resources with OpenHands' keys."""
    await _check(handler, kernel_id)
    kernel_id = await handler.kernel_of(kernel_id)
    activity, router = handler.state.activity, handler.state.router
    now = time.time()
    handler.finish_json(
        {
            "uptime": now - activity.started,
            "idle_time": now - activity.last_action,
            "resources": _resources(activity.process),
            "version": __version__,
            "default_kernel": router.default_kernel_id,
            "runtime": await _runtime(handler, kernel_id or router.default_kernel_id),
        }
    )


async def _runtime(handler: OhHandler, kernel_id: str | None) -> object:
    """Return the status of a kernel's runtime, or None if there is none or it is slow."""
    try:
        async with asyncio.timeout(STATUS_TIMEOUT_SECONDS):
            link = handler.state.router.link(kernel_id or "")
            reply = await link.request(Status(), load=False)
    except (KernelError, TimeoutError):
        return None
    return json.loads(reply.body or b"null")


def _resources(process: psutil.Process) -> dict[str, object]:
    memory, disk = process.memory_info(), psutil.disk_usage("/")
    try:
        counters = process.io_counters()
        io = {"read_bytes": counters.read_bytes, "write_bytes": counters.write_bytes}
    except (psutil.AccessDenied, AttributeError):  # not available on every platform
        io = {"read_bytes": 0, "write_bytes": 0}
    percent = process.memory_percent()
    return {
        "cpu_percent": process.cpu_percent(),
        "memory": {"rss": memory.rss, "vms": memory.vms, "percent": percent},
        "disk": {name: getattr(disk, name) for name in ("total", "used", "free", "percent")},
        "io": io,
    }


@cache
def _openapi() -> bytes:
    return OPENAPI.read_bytes()


@server_routes.add(r"GET /openapi\.yaml", READ_ACTIONS, "openapi")
async def openapi(handler: OhHandler) -> None:
    """Send the description of the REST interface as YAML (RFC 9512)."""
    handler.finish(_openapi(), set_content_type="application/yaml")
