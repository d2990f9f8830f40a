"""``alive``, ``server_info`` and ``openapi.yaml``: what there is, and how it does."""

from __future__ import annotations

import asyncio
import time
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter._version import __version__
from oh_jupyter.errors import KernelError
from oh_jupyter.server.handlers.base import OhHandler, Routes

OPENAPI = Path(__file__).parent.with_name("openapi.yaml")
"""The description of the REST interface."""

STATUS_TIMEOUT_SECONDS = 1.0
"""How long a busy kernel may take to say how it does."""


class AliveHandler(OhHandler):
    """GET whether the server answers, and has a kernel."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Say so; nothing is started or loaded for that."""
        await self.check_kernel(kernel_id)
        if kernel_id is not None:
            self.state.router.check(kernel_id)
        self.finish_json({"status": "ok"})


class NotebooksHandler(OhHandler):
    """GET the open notebooks with their kernels."""

    @web.authenticated
    @authorized("read", resource="sessions")
    async def get(self) -> None:
        """List path and kernel of each; a notebook without a kernel is not open."""
        sessions: Any = self.session_manager
        self.finish_json(
            [
                {"path": session["path"], "kernel_id": session["kernel"]["id"]}
                for session in await sessions.list_sessions()
                if session.get("kernel") and session.get("path") and session["type"] == "notebook"
            ]
        )


class ServerInfoHandler(OhHandler):
    """GET figures of the server, and of a runtime."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Uptime, idle time and resources, with OpenHands' keys."""
        await self.check_kernel(kernel_id)
        if kernel_id is not None:
            self.state.router.check(kernel_id)
        activity = self.state.activity
        now = time.time()
        self.finish_json(
            {
                "uptime": now - activity.started,
                "idle_time": now - activity.last_action,
                "resources": _resources(activity.process),
                "version": __version__,
                "default_kernel": self.state.router.default_kernel_id,
                "runtime": await self._runtime(kernel_id or self.state.router.default_kernel_id),
            }
        )

    async def _runtime(self, kernel_id: str | None) -> object:
        """How a kernel's runtime does, if there is one and it answers soon."""
        try:
            async with asyncio.timeout(STATUS_TIMEOUT_SECONDS):
                link = self.state.router.link(kernel_id or "")
                reply = await link.request("status", load=False)
        except (KernelError, TimeoutError):
            return None
        return reply.fields["runtime"]


def _resources(process: psutil.Process) -> dict[str, object]:
    memory = process.memory_info()
    disk = psutil.disk_usage("/")
    try:
        counters = process.io_counters()
        io = {"read_bytes": counters.read_bytes, "write_bytes": counters.write_bytes}
    except (psutil.AccessDenied, AttributeError):  # not to be had everywhere
        io = {"read_bytes": 0, "write_bytes": 0}
    return {
        "cpu_percent": process.cpu_percent(),
        "memory": {
            "rss": memory.rss,
            "vms": memory.vms,
            "percent": process.memory_percent(),
        },
        "disk": {
            "total": disk.total,
            "used": disk.used,
            "free": disk.free,
            "percent": disk.percent,
        },
        "io": io,
    }


@cache
def _contents() -> bytes:
    return OPENAPI.read_bytes()


class OpenApiHandler(OhHandler):
    """GET the description of the REST interface."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self) -> None:
        """Send it as YAML (RFC 9512)."""
        self.finish(_contents(), set_content_type="application/yaml")


KERNEL_ROUTES: Routes = [
    (r"/alive", AliveHandler),
    (r"/server_info", ServerInfoHandler),
]
SERVER_ROUTES: Routes = [
    (r"/notebooks", NotebooksHandler),
    (r"/openapi\.yaml", OpenApiHandler),
]
