"""A kernel of the server behind a set of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from jupyter_core.utils import ensure_async

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.operations import Operation
from oh_jupyter.operations.runtime import ToolsChanged
from oh_jupyter.server.links import KernelLink, Reply
from oh_jupyter.server.router import Router

WATCH_INTERVAL_SECONDS = 60.0  # interval in which a watch checks that someone still listens


class ServerKernel(Kernel):
    """One kernel of the server, or the current default one.

    Attributes:
        has_listeners: Returns whether any session follows changes of the tools.
    """

    def __init__(
        self,
        router: Router,
        kernels: Any,
        kernel_id: str | None,
        touch: Callable[[], None] = lambda: None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """Name a kernel; the first request starts and connects it.

        ``kernels`` is the server's kernel manager. ``touch`` is called when the kernel gets
        something to do, ``changed`` when its tools have changed.
        """
        super().__init__(kernel_id)
        self._router = router
        self._kernels = kernels
        self._touch = touch
        self._changed = changed
        self._tools_version: tuple[str, int] | None = None
        self._listed_incompletely = False
        self._watch: asyncio.Task[None] | None = None
        self.has_listeners: Callable[[], bool] = lambda: False

    @property
    def is_boxed(self) -> bool:
        """Whether the whole kernel is in a sandbox, as its kernelspec says."""
        return self._router.is_boxed(self.kernel_id)

    @property
    def workspace_of_box(self) -> str:
        """Directory that its sandbox may change, "" if it is not known."""
        return self._router.workspace_of_box(self.kernel_id)

    @property
    def is_there(self) -> bool:
        """Whether a request need not start it."""
        return self.kernel_id is not None or self._router.default_kernel_id is not None

    def note_incomplete_list(self) -> None:
        """Remember that a list lacks its tools, to announce them with its first reply."""
        self._listed_incompletely = True

    def note_activity(self) -> None:
        """Note that the kernel gets something to do."""
        self._touch()

    def other(self, kernel_id: str) -> Kernel:
        """Return another kernel of the same server."""
        return ServerKernel(self._router, self._kernels, kernel_id, self._touch)

    async def _link(self) -> KernelLink:
        """Return the link to it, or raise KernelError if it is unknown or cannot be started."""
        if self.kernel_id is None:
            return await self._router.default()
        return self._router.link(self.kernel_id)

    async def send(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        load: bool = False,
        key: str = "",
        notes: bool = False,
        cancellable: bool = False,
    ) -> Reply:
        """Send a request to the runtime over the link, see ``Kernel``."""
        link = await self._link()
        return await link.request(
            operation,
            body,
            envelope={"by_agent": True, "notes": notes},
            load=load,
            key=key,
            cancellable=cancellable,
        )

    async def request(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        load: bool = True,
        key: str = "",
    ) -> Reply:
        """Send a request of the current call, and notice changed tools by its reply."""
        reply = await super().request(operation, body, load=load, key=key)
        if self._listed_incompletely:
            self._listed_incompletely = False
            self._changed()
        if (
            self._check_version(reply)
            and self.has_listeners()
            and (self._watch is None or self._watch.done())
        ):
            self._watch = asyncio.create_task(self._watch_tools(await self._link()))
        return reply

    def _check_version(self, reply: Reply) -> bool:
        """Notice changed tools by the version in a reply; return whether it has one."""
        if "tools" not in reply.fields:
            return False
        now = (str(reply.fields.get("generation")), int(reply.fields["tools"]))
        before, self._tools_version = self._tools_version, now
        if before not in (None, now):
            self._changed()
        return True

    async def _watch_tools(self, link: KernelLink) -> None:
        """Poll the kernel for changed tools while any session follows them."""
        try:
            while self.has_listeners() and self._tools_version is not None:
                news = ToolsChanged(known=self._tools_version[1], wait=WATCH_INTERVAL_SECONDS)
                self._check_version(await link.request(news, load=False))
        except OhJupyterError:
            return  # the next reply of this or another kernel has the version

    async def interrupt(self) -> None:
        """Interrupt the running cell."""
        await ensure_async(self._kernels.interrupt_kernel((await self._link()).kernel_id))

    async def restart(self) -> None:
        """Restart the kernel; all variables are lost."""
        await ensure_async(self._kernels.restart_kernel((await self._link()).kernel_id))

    def close(self) -> None:
        """Stop background work."""
        if self._watch is not None:
            self._watch.cancel()
