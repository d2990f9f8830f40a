"""The endpoint of each kernel, made when its first client comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from oh_jupyter.background import run_in_background
from oh_jupyter.server.router import KERNEL_EVENTS, Router

if TYPE_CHECKING:
    from oh_jupyter.server.mcp.endpoint import McpEndpoint
    from oh_jupyter.server.mcp.notebooks import Notebooks
    from oh_jupyter.server.mcp.toolbox import Toolbox

__all__ = ["Endpoints"]


class Endpoints:
    """The MCP endpoints of a server, by kernel."""

    def __init__(
        self,
        serverapp: Any,
        router: Router,
        touch: Callable[[], None],
        *,
        list_skills: bool = False,
    ) -> None:
        """Make none yet.

        Args:
            serverapp: The Jupyter server.
            router: Knows its kernels.
            touch: Called when a kernel is asked to do something.
            list_skills: The agent skills are listed for every client, not only where the
                address asks for them.
        """
        self.list_skills = list_skills
        self._serverapp = serverapp
        self._router = router
        self._touch = touch
        self._notebooks: Notebooks | None = None
        self._endpoints: dict[str | None, McpEndpoint] = {}
        self._starting = asyncio.Lock()
        serverapp.event_logger.add_listener(schema_id=KERNEL_EVENTS, listener=self._kernel_event)

    def toolbox(self, kernel_id: str | None) -> Toolbox:
        """The tools for a kernel, None for the default one."""
        from oh_jupyter.server.mcp.actions import action_tools
        from oh_jupyter.server.mcp.kernel import Kernel, KernelTools, state_tools
        from oh_jupyter.server.mcp.notebook_tools import notebook_tools
        from oh_jupyter.server.mcp.notebooks import Notebooks
        from oh_jupyter.server.mcp.toolbox import Toolbox

        if self._notebooks is None:
            self._notebooks = Notebooks(self._serverapp)
        kernel = Kernel(
            self._router,
            kernel_id,
            self._touch,
            lambda: run_in_background(self.tools_changed(kernel_id)),
        )
        fixed = [
            *action_tools(kernel),
            *state_tools(kernel),
            *notebook_tools(self._notebooks, kernel),
        ]
        kernel.listens = lambda: self._listened_to(kernel_id)
        taken = (tool.name for tool in fixed)
        return Toolbox(fixed, KernelTools(kernel, taken), kernel=kernel)

    def _listened_to(self, kernel_id: str | None) -> bool:
        endpoint = self._endpoints.get(kernel_id)
        return endpoint is not None and endpoint.listeners > 0

    async def get(self, kernel_id: str | None) -> McpEndpoint:
        """The endpoint of a kernel, None for the default one, open."""
        async with self._starting:
            if kernel_id not in self._endpoints:
                # The SDK takes half a second, in which nobody else should have to wait.
                module = await asyncio.to_thread(import_module, "oh_jupyter.server.mcp.endpoint")
                # The SDK quotes it again.
                base = unquote(self._serverapp.web_app.settings["base_url"]).rstrip("/")
                below = "" if kernel_id is None else f"/kernels/{kernel_id}"
                root_path = f"{base}/oh_jupyter{below}"
                endpoint = module.McpEndpoint(self.toolbox(kernel_id), root_path)
                await endpoint.start()
                self._endpoints[kernel_id] = endpoint
            return self._endpoints[kernel_id]

    async def _kernel_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        """Close the endpoint of a kernel that is no more."""
        gone = data.get("action") == "shutdown" and data.get("status") == "success"
        endpoint = self._endpoints.pop(data.get("kernel_id"), None) if gone else None
        if endpoint is not None:
            await endpoint.close()

    async def tools_changed(self, kernel_id: str | None) -> None:
        """Tell the sessions of a kernel, None for the default one, that its tools are others."""
        same = {kernel_id, kernel_id or self._router.default_kernel_id}
        if kernel_id is not None and kernel_id == self._router.default_kernel_id:
            same.add(None)
        for known in same & self._endpoints.keys():
            await self._endpoints[known].tools_changed()

    async def close(self) -> None:
        """End all sessions."""
        self._serverapp.event_logger.remove_listener(listener=self._kernel_event)
        for kernel_id in list(self._endpoints):
            await self._endpoints.pop(kernel_id).close()
