"""Start and end of a fleet's kernels through Jupyter's REST interface."""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import anyio

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.client.http import HttpConnection, parsed
from oh_jupyter.errors import (
    ExtensionMissingError,
    KernelDiedError,
    KernelNotFoundError,
    KernelTimeoutError,
    OhJupyterError,
    ServerError,
)

CONNECT_SECONDS = 10.0
END_SECONDS = 60.0
"""Timeout of the server for ending a kernel."""

SESSION_TYPE = "fleet"
"""Type by which the panel recognizes the sessions of fleets."""

LOST = (KernelDiedError, KernelNotFoundError, KernelTimeoutError, ExtensionMissingError)
"""Errors of a kernel that is gone, has lost its runtime, or is silent."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Member:
    """A kernel with its client, the generation of its runtime, and its server."""

    kernel_id: str
    runtime: AsyncRuntimeClient
    generation: str
    url: str
    token: str
    worker: str = ""

    async def is_same_runtime(self) -> bool:
        """Return whether the runtime still has its state."""
        try:
            return await self.runtime.generation() == self.generation
        except Exception as error:
            if self.is_lost(error):
                return False
            raise

    def is_lost(self, error: Exception | None) -> bool:
        """Return whether an error means that the kernel is lost, alone or with its worker."""
        if self.worker and isinstance(error, ServerError):
            return error.status == 0 or error.status >= HTTPStatus.BAD_GATEWAY
        return isinstance(error, LOST)


class KernelStarter:
    """Starts and ends kernels through Jupyter's REST interface, as sessions of a fleet."""

    def __init__(
        self,
        url: str,
        token: str,
        name: str,
        kernel: str | None,
        path: str | None,
        worker: str = "",
    ) -> None:
        self.url, self.token, self.name, self.worker = url, token, name, worker
        self._kernel, self._path = kernel, path
        self._connection = HttpConnection(url, token, None, None, CONNECT_SECONDS)

    async def start(self, slot: int) -> Member:
        """Start a kernel with a runtime, or raise OhJupyterError.

        Another process may take the ports that Jupyter chose for the kernel before the kernel
        does. Jupyter would restart it with the same ports, so another kernel is started.
        """
        try:
            return await self._start(slot)
        except KernelDiedError as error:
            logger.warning("A kernel died at its start, and another is started: %s", error)
            return await self._start(slot)

    async def _start(self, slot: int) -> Member:
        model = {
            "type": SESSION_TYPE,
            "name": f"Fleet {self.name} {slot + 1}",
            # Paths of sessions are unique; a kernel starts in the parent directory.
            "path": "/".join(filter(None, [(self._path or "").strip("/"), uuid.uuid4().hex])),
            "kernel": {"name": self._kernel} if self._kernel else {},
        }
        try:
            session = parsed(await self._connection.send("POST", "/api/sessions", json=model))
        except ServerError as error:
            kernel = self._kernel or "the server's default"
            raise ServerError(
                f"No kernel ({kernel}) can be started: {error}", error.status
            ) from None
        kernel_id = str(session["kernel"]["id"])
        runtime = AsyncRuntimeClient(self.url, self.token, kernel_id)
        try:
            await runtime.list_files()  # loads oh_jupyter
            generation = await runtime.generation()
            return Member(kernel_id, runtime, generation, self.url, self.token, self.worker)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._end(kernel_id, runtime)
            raise

    async def end(self, member: Member) -> None:
        """Shut a kernel down if it still exists."""
        await self._end(member.kernel_id, member.runtime)

    async def _end(self, kernel_id: str, runtime: AsyncRuntimeClient) -> None:
        try:
            await self._delete(kernel_id)
        except ServerError as error:
            if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return  # it is gone already
            with suppress(OhJupyterError):  # Jupyter cannot end a kernel while it restarts it
                await runtime.generation()
            with suppress(OhJupyterError):
                await self._delete(kernel_id)
        finally:
            await runtime.close()

    async def _delete(self, kernel_id: str) -> None:
        path = f"/api/kernels/{quote(kernel_id)}"
        await self._connection.send("DELETE", path, timeout=END_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()
