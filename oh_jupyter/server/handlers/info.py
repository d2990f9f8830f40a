"""``alive``, ``server_info`` and ``notebooks``."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal

import psutil

from oh_jupyter._version import __version__
from oh_jupyter.errors import KernelError
from oh_jupyter.operations import reply_to, to_json
from oh_jupyter.operations.runtime import RuntimeStatus, Status
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import Contract, returns
from oh_jupyter.server.handlers.routes import READ_ACTIONS, RouteTable

STATUS_TIMEOUT_SECONDS = 1.0  # time that a busy kernel gets to report its status

routes = RouteTable()
server_routes = RouteTable()


@dataclass(frozen=True)
class Alive:
    """Both are there."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True)
class Memory:
    """Memory of the server's process: bytes, and percent of the machine's."""

    rss: int
    vms: int
    percent: float


@dataclass(frozen=True)
class Disk:
    """The server's root file system, in bytes and percent."""

    total: int
    used: int
    free: int
    percent: float


@dataclass(frozen=True)
class Transferred:
    """Bytes that the server's process has read and written."""

    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Resources:
    """Resources of the server's process and its root file system."""

    cpu_percent: float
    memory: Memory
    disk: Disk
    io: Transferred


@dataclass(frozen=True)
class ServerInfo:
    """Figures of the server and of a kernel's runtime, with OpenHands' keys.

    Attributes:
        uptime: Seconds since the server started.
        idle_time: Seconds since the last Action started.
        resources: Of the server's process and its root file system, in bytes and percent.
        version: Version of oh_jupyter.
        default_kernel: Id of the default kernel; null if it does not run.
        runtime: Status of the kernel's runtime; null if it does not reply within a second.
    """

    uptime: float
    idle_time: float
    resources: Resources
    version: str
    default_kernel: str | None
    runtime: RuntimeStatus | None


ALIVE = Contract(returns("Both are there.", Alive))


@routes.add("GET /alive", READ_ACTIONS, "alive", contract=ALIVE)
async def alive(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Check that the server responds and has the kernel; start and load nothing."""
    await _check(handler, kernel_id)
    handler.finish_json(to_json(Alive()))


async def _check(handler: OhHandler, kernel_id: str | None) -> None:
    await handler.check_kernel(kernel_id)
    if kernel_id is not None:
        handler.state.router.check(kernel_id)


@dataclass(frozen=True)
class NotebookKernel:
    """An open notebook and its kernel.

    Attributes:
        path: Path below the server's root.
        kernel_id: Id of its kernel.
    """

    path: str
    kernel_id: str


OPEN_NOTEBOOKS = Contract(
    returns("The notebooks; one without a kernel is not open.", list[NotebookKernel])
)


@server_routes.add("GET /notebooks", ("read", "sessions"), "listNotebooks", contract=OPEN_NOTEBOOKS)
async def notebooks(handler: OhHandler) -> None:
    """List the open notebooks with their kernels."""
    rows = [
        NotebookKernel(each.path, each.kernel_id)
        for each in await handler.open_notebooks()
        if each.kernel_id
    ]
    handler.finish_json(to_json(rows))


FIGURES = Contract(returns("Figures.", ServerInfo))


@routes.add("GET /server_info", READ_ACTIONS, "serverInfo", contract=FIGURES)
async def server_info(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Get figures of the server and of the kernel's runtime; start nothing."""
    await _check(handler, kernel_id)
    kernel_id = await handler.kernel_of(kernel_id)
    activity, router = handler.state.activity, handler.state.router
    now = time.time()
    info = ServerInfo(
        uptime=now - activity.started,
        idle_time=now - activity.last_action,
        resources=_resources(activity.process),
        version=__version__,
        default_kernel=router.default_kernel_id,
        runtime=await _runtime(handler, kernel_id or router.default_kernel_id),
    )
    handler.finish_json(to_json(info))


async def _runtime(handler: OhHandler, kernel_id: str | None) -> RuntimeStatus | None:
    """Return the status of a kernel's runtime, or None if there is none or it is slow."""
    try:
        async with asyncio.timeout(STATUS_TIMEOUT_SECONDS):
            link = handler.state.router.link(kernel_id or "")
            operation = Status()
            reply = await link.request(operation, load=False)
        return reply_to(operation, reply.body)
    except (KernelError, TimeoutError):
        return None


def _resources(process: psutil.Process) -> Resources:
    memory, disk = process.memory_info(), psutil.disk_usage("/")
    try:
        counters = process.io_counters()
        io = Transferred(counters.read_bytes, counters.write_bytes)
    except (psutil.AccessDenied, AttributeError):  # not available on every platform
        io = Transferred(0, 0)
    percent = process.memory_percent()
    return Resources(
        cpu_percent=process.cpu_percent(),
        memory=Memory(memory.rss, memory.vms, percent),
        disk=Disk(disk.total, disk.used, disk.free, disk.percent),
        io=io,
    )
