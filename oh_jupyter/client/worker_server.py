"""A Jupyter server in a worker of an engine such as Dask, for the kernels of a fleet.

``serve`` runs in the worker. The server is a child of the worker's process, which it cannot
outlive; it also ends by itself after an hour without work, should nobody end it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from oh_jupyter.client.started_server import StartedServer

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
