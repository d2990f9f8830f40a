"""Kernels of a fleet on the workers of an executor, each worker with a server of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from oh_jupyter.client.http import HttpConnection
from oh_jupyter.client.kernel_starter import CONNECT_SECONDS, KernelStarter, Member
from oh_jupyter.client.started_server import StartedServer
from oh_jupyter.errors import ConfigError, OhJupyterError, ServerError

IDLE_SECONDS = 3600
"""Time without activity after which kernels and the server end."""

_lock = threading.Lock()
_servers: dict[str, tuple[StartedServer, WorkerServer]] = {}
"""The servers of this worker, by the token of their fleet."""


@dataclass(frozen=True)
class ServerRequest:
    """Request for a server, to a worker.

    Attributes:
        token: Token of the fleet.
        directory: Root of the server; None for a temporary one.
        environment: Variables of the server and its kernels.
        number: Makes requests differ, since engines keep results of equal ones.
    """

    token: str = field(repr=False)
    directory: str | None
    environment: Mapping[str, str] = field(repr=False)
    number: str


@dataclass(frozen=True)
class WorkerServer:
    """A server that runs: its address, and the worker's host and process id."""

    url: str
    worker: str


def serve(request: ServerRequest) -> WorkerServer:
    """Start this worker's server for a fleet, or return the one that is running."""
    with _lock:
        running = _servers.get(request.token)
        if running is None or not running[0].is_running:
            running = _servers[request.token] = _start(request)
        return running[1]


def _start(request: ServerRequest) -> tuple[StartedServer, WorkerServer]:
    host = _host()
    server = StartedServer(
        request.directory,
        request.token,
        host=host,
        options=(
            f"--MappingKernelManager.cull_idle_timeout={IDLE_SECONDS}",
            f"--ServerApp.shutdown_no_activity_timeout={IDLE_SECONDS}",
        ),
        environment=request.environment,
    )
    return server, WorkerServer(server.url, f"{host}:{os.getpid()}")


def _host() -> str:
    """Return the address at which others reach this worker: that of Dask's, else this machine."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return "127.0.0.1"
    try:
        address = distributed.get_worker().address
    except ValueError:  # this is no worker of Dask
        return "127.0.0.1"
    return socket.gethostbyname(urlsplit(address).hostname or "127.0.0.1")


MAX_STARTS = 10
"""Attempts to start a kernel, since workers can end while they start one."""


def executor_of(engine: Any) -> Executor:
    """Return an executor; that of a client of dask.distributed."""
    executor = engine.get_executor() if hasattr(engine, "get_executor") else engine
    if not isinstance(executor, Executor):
        raise ConfigError(
            f"{engine!r} is neither an executor of concurrent.futures nor a client of "
            "dask.distributed"
        )
    return executor


class ExecutorStarter:
    """Starts kernels wherever the executor runs the next task."""

    def __init__(
        self,
        executor: Executor,
        name: str,
        kernel: str | None,
        directory: str | None,
        environment: Mapping[str, str],
    ) -> None:
        self._executor, self._name, self._kernel = executor, name, kernel
        self._directory, self._environment = directory, dict(environment)
        self._token = secrets.token_urlsafe(32)
        self._starters: dict[str, KernelStarter] = {}

    async def start(self, slot: int) -> Member:
        """Start a kernel on a worker, or raise OhJupyterError."""
        for attempt in range(1, MAX_STARTS + 1):
            try:
                starter = await self._starter()
                return await starter.start(slot)
            except ServerError as error:  # the worker has ended since
                if error.status or attempt == MAX_STARTS:
                    raise
        raise AssertionError

    async def _starter(self) -> KernelStarter:
        """Return the starter for the server of the worker that has time for it."""
        number = uuid.uuid4().hex
        request = ServerRequest(self._token, self._directory, self._environment, number)
        try:
            server = await asyncio.wrap_future(self._executor.submit(serve, request))
        except OhJupyterError:
            raise
        except Exception as error:  # engines report lost workers in various ways
            reason = f"{type(error).__name__}: {error}"
            raise ServerError(f"No worker of the executor can start a server: {reason}") from error
        if server.url not in self._starters:
            self._starters[server.url] = KernelStarter(
                server.url, self._token, self._name, self._kernel, None, server.worker
            )
        return self._starters[server.url]

    async def end(self, member: Member) -> None:
        """Shut a kernel down if it still exists."""
        await self._starters[member.url].end(member)

    async def close(self) -> None:
        """Shut down the servers that still run."""
        await asyncio.gather(*map(self._shut_down, self._starters))
        for starter in self._starters.values():
            await starter.close()

    async def _shut_down(self, url: str) -> None:
        connection = HttpConnection(url, self._token, None, None, CONNECT_SECONDS)
        with suppress(OhJupyterError):  # it has ended with its worker
            await connection.send("POST", "/api/shutdown", timeout=CONNECT_SECONDS)
        await connection.close()
