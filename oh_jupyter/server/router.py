"""Which kernel a request goes to: an open notebook's, or the default one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jupyter_server.gateway.managers import GatewayKernelManager, GatewayMappingKernelManager

from oh_jupyter.config import Settings
from oh_jupyter.errors import KernelError, KernelNotFoundError
from oh_jupyter.server.limits import Limits
from oh_jupyter.server.links import GatewayLink, KernelLink, ZmqLink
from oh_jupyter.server.links.loading import loading_with

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
        settings: Mapping[str, Any] | None = None,
        path: str = "",
        limits: Limits | None = None,
    ) -> None:
        """Make a router; no kernel is touched yet.

        Args:
            kernel_manager: The server's MappingKernelManager.
            event_logger: The server's event logger: it tells of restarts and shutdowns.
            kernel_name: Kernelspec of the default kernel; None for the server's default.
            settings: Settings of oh_jupyter in the default kernel, by name.
            path: Where the default kernel starts, relative to the server's root.
            limits: How much one kernel may be asked at once.
        """
        self._kernels = kernel_manager
        self._events = event_logger
        self._kernel_name = kernel_name
        self._settings = dict(settings or {})
        self._path = path
        self._limits = limits or Limits()
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
        self._check(kernel_id)
        link = self._links.get(kernel_id)
        if link is None:
            link = self._links[kernel_id] = self._connected(kernel_id)
            link.turns = self._limits.turns()
            self._kernels.add_restart_callback(kernel_id, lambda: self._died(kernel_id), "restart")
            self._kernels.add_restart_callback(
                kernel_id, lambda: self._restarted(kernel_id, "died for good"), "dead"
            )
        self._touch(kernel_id)
        return link

    def is_linked(self, kernel_id: str | None) -> bool:
        """Whether a kernel was ever asked for anything; no agent's Action waits in another.

        Args:
            kernel_id: The server's id of it; None for the default one.

        Returns:
            Whether it was.

        Raises:
            KernelNotFoundError: The server has no such kernel.
        """
        if kernel_id is not None:
            self._check(kernel_id)
        return (kernel_id or self.default_kernel_id) in self._links

    def _check(self, kernel_id: str) -> None:
        if kernel_id not in self._kernels:
            self._drop(kernel_id)
            raise KernelNotFoundError(
                f"There is no kernel {kernel_id!r} on this server. GET /api/kernels lists them"
            )

    def _connected(self, kernel_id: str) -> KernelLink:
        manager = self._kernels.get_kernel(kernel_id)
        if not isinstance(manager, GatewayKernelManager):
            return ZmqLink(kernel_id, manager)
        # A gateway passes no arguments on to the kernels that it starts.
        settings = self._settings if kernel_id == self.default_kernel_id else {}
        return GatewayLink(kernel_id, manager, loading_with(settings))

    async def default(self) -> KernelLink:
        """The link to the default kernel, which is started if it is not there.

        Returns:
            The link.

        Raises:
            KernelError: It cannot be started.
        """
        async with self._starting:
            if self.default_kernel_id in self._kernels:
                link = self.link(str(self.default_kernel_id))
                try:
                    await link.open()
                    return link
                except KernelNotFoundError:
                    # A gateway has culled it, and does not tell.
                    self._kernels.remove_kernel(self.default_kernel_id)
                    self._drop(str(self.default_kernel_id))
            self.default_kernel_id = await self._start()
            return self.link(self.default_kernel_id)

    async def _start(self) -> str:
        name = self._kernel_name
        arguments: dict[str, Any] = {}
        try:
            if isinstance(self._kernels, GatewayMappingKernelManager):
                # A gateway passes nothing on to its kernels; the server would log it, though.
                if name is None:  # by this the server learns which one is the gateway's default
                    specs: Any = self._kernels.kernel_spec_manager
                    await specs.get_all_specs()
            else:
                given = ["--ext", "oh_jupyter", *_arguments(self._settings)]
                arguments = {"extra_arguments": given}
                if secrets := _secrets(self._settings):
                    arguments["env"] = {**os.environ, **secrets}
            name = name or self._kernels.default_kernel_name
            kernel_id: str = await self._kernels.start_kernel(
                path=self._path, kernel_name=name, **arguments
            )
        except Exception as problem:
            raise KernelError(
                f"The default kernel ({name}) cannot be started: {problem}"
            ) from problem
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


def _arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as a kernel's command line takes them, which everybody may read: no secrets."""
    return [
        f"--OhJupyter.{name}={list(value) if isinstance(value, tuple) else value}"
        for name, value in settings.items()
        if not _metadata(name)["secret"]
    ]


def _secrets(settings: Mapping[str, Any]) -> dict[str, str]:
    """The secret ones, as environment variables."""
    return {
        _metadata(name)["variables"][0]: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
        if _metadata(name)["secret"]
    }


def _metadata(name: str) -> Mapping[str, Any]:
    return Settings.__dataclass_fields__[name].metadata
