"""This kernel behind the tools of a guest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import oh_jupyter.kernel.control.handler  # noqa: F401 - the operations register
from oh_jupyter.background import run_in_background
from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import KernelError, RuntimeClosedError
from oh_jupyter.events.actor import current_actor
from oh_jupyter.kernel.cells.main_thread import interrupt_main_thread
from oh_jupyter.kernel.control.rpc import Request, find_handler, perform
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.operations import Operation

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh


class OwnKernel(Kernel):
    """This process, whose operations are called on the runtime's loop."""

    def __init__(self, kernel_id: str, oh: Oh) -> None:
        super().__init__(kernel_id)
        self._oh = oh

    @property
    def restart_fault(self) -> str:
        """Why it cannot be restarted: what has started this kernel must do that."""
        return "No Jupyter server has this kernel to restart it. Ask the person to restart it."

    def other(self, kernel_id: str) -> Kernel:
        """Return this kernel: there is no other without a server."""
        return self

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
        """Call an operation, see ``Kernel``."""
        envelope = {
            "actor": current_actor.get().to_json(),
            "by_agent": True,
            "key": key,
            "notes": notes,
        }
        content = {**operation.to_fields(), **envelope}
        request = Request(self._oh.host.runtime, content, [] if body is None else [body], self._oh)
        # In a task of its own: an Action is cancelled once, and then ends in its own time.
        task = run_in_background(_answered(operation.wire_name, request))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise RuntimeClosedError("It was cancelled, or the runtime closed")
        reply: Reply = task.result()
        return reply

    async def interrupt(self) -> None:
        """Interrupt the running cell."""
        interrupt_main_thread()

    async def restart(self) -> None:
        """Raise KernelError."""
        raise KernelError(self.restart_fault)


async def _answered(name: str, request: Request) -> Reply:
    return await perform(find_handler(name), request)
