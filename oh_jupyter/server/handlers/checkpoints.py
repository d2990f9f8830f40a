"""The checkpoints of a kernel's workspace, and the way back to them."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler

__all__ = ["CheckpointsHandler", "RewindHandler"]


class CheckpointsHandler(OhHandler):
    """GET the checkpoints, POST one."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """List them, the oldest first."""
        link = await self.link(kernel_id)
        reply = await link.request("checkpoints")
        self.finish_json(reply.body or b"null")

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Keep the files as they are now: ``{"label": "..."}``."""
        body = self.json_body()
        if not isinstance(body, dict) or not isinstance(body.get("label"), str):
            raise WireError('The body must be {"label": "..."}', "label")
        link = await self.link(kernel_id)
        reply = await link.request("mark_checkpoint", {"label": body["label"]})
        self.finish_json(reply.body or b"null")


class RewindHandler(OhHandler):
    """POST the wish to go back to a checkpoint."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Undo the turns since then, or tell what that would do (``"preview": true``)."""
        body = self.json_body()
        if not isinstance(body, dict):
            raise WireError('The body must be a JSON object such as {"id": 12}', "body")
        known = ("id", "everything", "preview", "source")
        fields = {name: body[name] for name in known if name in body}
        link = await self.link(kernel_id)
        reply = await link.request("rewind", fields)
        self.finish_json(reply.body or b"null")
