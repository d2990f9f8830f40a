"""``execute_action`` and ``list_files``, on the default kernel or an open notebook's."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import KernelTimeoutError, WireError
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
        key = self.request.headers.get(ID_HEADER)
        if key is None:
            work = execute(link, body)
            task = self._task = asyncio.get_running_loop().create_task(work)
            await asyncio.wait({task})
        else:
            requests: Requests = self.settings["oh_jupyter_requests"]
            stored = requests.start(key, self.asker, partial(execute, link, body))
            task = stored.task
            self.set_header(ID_HEADER, key)
            await stored.wait_unless_overdue()
            if not task.done():
                raise KernelTimeoutError(
                    f"{link.silence()}. Its answer will be at oh_jupyter/requests/{key}"
                )
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


async def execute(link: KernelLink, body: bytes, overdue: asyncio.Event | None = None) -> Reply:
    """Have an Action carried out; when this is cancelled or given up, so is the Action.

    Args:
        link: The kernel.
        body: ``{"action": {...}}``.
        overdue: Set while a kernel is silent that has received it; the wait then goes on.

    Returns:
        The answer, whose body is the Observation.

    Raises:
        OhJupyterError: There is none.
    """
    key = uuid.uuid4().hex
    try:
        return await link.request("execute_action", {"key": key}, body, overdue=overdue)
    except (asyncio.CancelledError, KernelTimeoutError):
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
