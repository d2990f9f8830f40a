"""Which kernel a request goes to: an open notebook's, or the default one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from oh_jupyter.errors import KernelError, KernelNotFoundError
from oh_jupyter.server.links import KernelLink, ZmqLink

__all__ = ["Router"]

KERNEL_EVENTS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class Router:
    """Links by kernel id, and the life of the default kernel.

    Attributes:
        default_kernel_id: Id of the default kernel, or None before it is needed.
    """

    def __init__(
        self,
        kernel_manager: Any,
        event_logger: Any,
        *,
        kernel_name: str | None = None,
        start_arguments: list[str] | None = None,
        path: str = "",
    ) -> None:
        """Make a router; no kernel is touched yet.

        Args:
            kernel_manager: The server's MappingKernelManager.
            event_logger: The server's event logger: it tells of restarts and shutdowns.
            kernel_name: Kernelspec of the default kernel; None for the server's default.
            start_arguments: Arguments of the default kernel's command line.
            path: Where the default kernel starts, relative to the server's root.
        """
        self._kernels = kernel_manager
        self._events = event_logger
        self._kernel_name = kernel_name
        self._start_arguments = start_arguments or []
        self._path = path
        self._links: dict[str, KernelLink] = {}
        self._being_restarted: set[str] = set()
        self._starting = asyncio.Lock()
        self.default_kernel_id: str | None = None
        event_logger.add_listener(schema_id=KERNEL_EVENTS, listener=self._kernel_event)

    def link(self, kernel_id: str) -> KernelLink:
        """The link to a kernel.

        Args:
            kernel_id: The server's id of it.

        Returns:
            The link, connected.

        Raises:
            KernelNotFoundError: The server has no such kernel.
        """
        if kernel_id not in self._kernels:
            self._drop(kernel_id)
            raise KernelNotFoundError(
                f"There is no kernel {kernel_id!r} on this server. GET /api/kernels lists them"
            )
        link = self._links.get(kernel_id)
        if link is None:
            manager = self._kernels.get_kernel(kernel_id)
            link = self._links[kernel_id] = ZmqLink(kernel_id, manager)
            self._kernels.add_restart_callback(kernel_id, lambda: self._died(kernel_id), "restart")
            self._kernels.add_restart_callback(
                kernel_id, lambda: self._restarted(kernel_id, "died for good"), "dead"
            )
        self._touch(kernel_id)
        return link

    async def default(self) -> KernelLink:
        """The link to the default kernel, which is started if it is not there.

        Returns:
            The link.

        Raises:
            KernelError: It cannot be started.
        """
        async with self._starting:
            if self.default_kernel_id not in self._kernels:
                self.default_kernel_id = await self._start()
            assert self.default_kernel_id is not None
            return self.link(self.default_kernel_id)

    async def _start(self) -> str:
        arguments = {"kernel_name": self._kernel_name} if self._kernel_name else {}
        try:
            kernel_id: str = await self._kernels.start_kernel(
                path=self._path,
                extra_arguments=["--ext", "oh_jupyter", *self._start_arguments],
                **arguments,
            )
        except Exception as problem:
            name = self._kernel_name or "the default kernel"
            raise KernelError(f"{name} cannot be started: {problem}") from problem
        return kernel_id

    def _touch(self, kernel_id: str) -> None:
        """Our requests are no activity in the server's eyes; a culler must see them."""
        self._kernels.get_kernel(kernel_id).last_activity = datetime.now(UTC)

    def _died(self, kernel_id: str) -> None:
        """The server has found it dead and restarts it; an event will tell of that, too."""
        self._being_restarted.add(kernel_id)
        self._restarted(kernel_id, "died")

    def _restarted(self, kernel_id: str, what: str) -> None:
        link = self._links.get(kernel_id)
        if link is not None:
            link.kernel_gone(what)

    async def _kernel_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        kernel_id = data.get("kernel_id", "")
        if data.get("status") != "success":
            return
        if data.get("action") == "restart":
            if kernel_id in self._being_restarted:
                self._being_restarted.discard(kernel_id)
            else:
                self._restarted(kernel_id, "was restarted")
        elif data.get("action") == "shutdown":
            self._drop(kernel_id)

    def _drop(self, kernel_id: str) -> None:
        link = self._links.pop(kernel_id, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Disconnect from all kernels; they are the server's to shut down."""
        self._events.remove_listener(listener=self._kernel_event)
        for kernel_id in list(self._links):
            self._drop(kernel_id)
