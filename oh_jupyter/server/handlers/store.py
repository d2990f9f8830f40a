"""The kernel's file store: list, read, write and delete, contents streamed."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.files import StreamedUploadHandler

__all__ = ["StoreHandler"]


@web.stream_request_body
class StoreHandler(StreamedUploadHandler):
    """Files of the store by path.

    A path that ends in a slash, or none, is a directory; so is any with ``?list=true``.
    """

    resource = "oh_jupyter:store"
    action = "write"
    upload_method = "PUT"

    @web.authenticated
    @authorized("read", resource="oh_jupyter:store")
    async def get(self, path: str = "", kernel_id: str | None = None) -> None:
        """Send a file, or the entries of a directory."""
        link = await self.link(kernel_id)
        listing = self.flag("list")
        if listing or path == "" or path.endswith("/"):
            reply = await link.request("list_store", {"path": path.rstrip("/")})
            self.finish_json({"path": path, "entries": reply.fields["entries"]})
            return
        reply = await link.request("download_from_store", {"path": path})
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("X-Content-Type-Options", "nosniff")
        await self.send_pieces(link, reply.fields["id"])

    @web.authenticated
    @authorized("write", resource="oh_jupyter:store")
    async def put(self, path: str = "", kernel_id: str | None = None) -> None:
        """Keep the body as a file, which becomes visible as a whole."""
        await self.settle()
        self.set_status(204)
        self.finish()

    @web.authenticated
    @authorized("write", resource="oh_jupyter:store")
    async def delete(self, path: str = "", kernel_id: str | None = None) -> None:
        """Delete a file, or a directory with all that is in it."""
        link = await self.link(kernel_id)
        await link.request("delete_from_store", {"path": path.rstrip("/")})
        self.set_status(204)
        self.finish()

    async def start(self) -> None:
        """Name the file."""
        fields: dict[str, Any] = {"path": self.path_kwargs.get("path") or ""}
        await self.begin(self.path_kwargs.get("kernel_id"), "upload_to_store", **fields)
