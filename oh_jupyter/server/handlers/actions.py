"""``execute_action`` and ``list_files``, on the default kernel or an open notebook's."""

from __future__ import annotations

import asyncio
import uuid

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.requests import ID_HEADER, Requests
from oh_jupyter.server.links import KernelLink, Reply

__all__ = ["ExecuteActionHandler", "ListFilesHandler"]


class ExecuteActionHandler(OhHandler):
    """POST an Action, get its Observation.

    A client that goes away takes its Action back: what can be interrupted is. One that sent
    an id in the header ``X-Request-ID`` can fetch the Observation later instead.
    """

    _task: asyncio.Task[Reply] | None = None

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Carry out the Action in the body.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        body = self.body
        if not body:
            raise WireError('The request has no body: send {"action": {...}}', "action")
        link = await self.link(kernel_id)
        self.settings["oh_jupyter_activity"].touch()
        work = execute(link, body)
        key = self.request.headers.get(ID_HEADER)
        if key is None:
            task = self._task = asyncio.get_running_loop().create_task(work)
        else:
            requests: Requests = self.settings["oh_jupyter_requests"]
            task = requests.start(key, self.asker, work)
            self.set_header(ID_HEADER, key)
        # The task of a request with an id must live on when this one is cancelled.
        await asyncio.wait({task})
        if task.cancelled():
            raise web.HTTPError(410, "The request was cancelled")
        reply = task.result()
        self.set_header("X-OH-Jupyter-Generation", str(reply.fields.get("generation", "")))
        self.finish_json(reply.body or b"null")

    def on_connection_close(self) -> None:
        """Take the Action back, since nobody waits for it any more."""
        if self._task is not None:
            self._task.cancel()
        super().on_connection_close()


async def execute(link: KernelLink, body: bytes) -> Reply:
    """Have an Action carried out; when this is cancelled, so is the Action.

    Args:
        link: The kernel.
        body: ``{"action": {...}}``.

    Returns:
        The answer, whose body is the Observation.

    Raises:
        OhJupyterError: There is none.
    """
    key = uuid.uuid4().hex
    try:
        return await link.request("execute_action", {"key": key}, body)
    except asyncio.CancelledError:
        cancel = asyncio.ensure_future(link.request("cancel", {"key": key}, load=False))
        # Nobody waits for it, and a kernel that is gone has nothing to cancel.
        cancel.add_done_callback(lambda task: task.cancelled() or task.exception())
        raise


class ListFilesHandler(OhHandler):
    """POST a directory, get its names."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """List a directory of the kernel's machine.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        body = self.json_body() if self.body else {}
        path = body.get("path") if isinstance(body, dict) else body
        if not isinstance(body, dict) or not isinstance(path, str | None):
            raise WireError('The body must be {"path": "..."}, or {}', "path")
        link = await self.link(kernel_id)
        reply = await link.request("list_files", {"path": path})
        self.finish_json(reply.fields["names"])
