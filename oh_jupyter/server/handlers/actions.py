"""``execute_action`` and ``list_files``, on the default kernel or an open notebook's."""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler

__all__ = ["ExecuteActionHandler", "ListFilesHandler"]


class ExecuteActionHandler(OhHandler):
    """POST an Action, get its Observation."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Carry out the Action in the body.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        if not self.request.body:
            raise WireError('The request has no body: send {"action": {...}}', "action")
        link = await self.link(kernel_id)
        self.settings["oh_jupyter_activity"].touch()
        reply = await link.request("execute_action", body=self.request.body)
        self.set_header("X-OH-Jupyter-Generation", str(reply.fields.get("generation", "")))
        self.finish_json(reply.body or b"null")


class ListFilesHandler(OhHandler):
    """POST a directory, get its names."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """List a directory of the kernel's machine.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            raise WireError("The body is not JSON", "body") from None
        path = body.get("path") if isinstance(body, dict) else body
        if not isinstance(body, dict) or not isinstance(path, str | None):
            raise WireError('The body must be {"path": "..."}, or {}', "path")
        link = await self.link(kernel_id)
        reply = await link.request("list_files", {"path": path})
        self.finish_json(reply.fields["names"])
