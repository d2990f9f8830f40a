"""Kernels of a fleet on the workers of an executor, each worker with a server of its own."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

from oh_jupyter.client.http import HttpConnection
from oh_jupyter.client.kernel_starter import CONNECT_SECONDS, KernelStarter, Member
from oh_jupyter.client.worker_server import ServerRequest, serve
from oh_jupyter.errors import ConfigError, OhJupyterError, ServerError

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
