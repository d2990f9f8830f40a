"""``view``: a file of the kernel's machine as a browser shows it."""

from __future__ import annotations

import hmac
import mimetypes
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler

__all__ = ["ViewHandler"]

BYTES = "application/octet-stream"


class ViewHandler(OhHandler):
    """GET a file as what it is: PDFs, pictures and texts are shown, others downloaded.

    OpenHands' agents open such an address in a browser that has logged in nowhere. So there is
    one with a key in it, which is in the file that the setting ``server_url_file`` names.
    """

    async def admit(self, **kwargs: Any) -> None:
        """Let in who knows the key in the address."""
        given = str(self.path_kwargs.get("view_key") or "")
        self.by_address_key = hmac.compare_digest(given.encode(), self.state.view_key.encode())
        await super().admit(**kwargs)

    @property
    def content_security_policy(self) -> str:
        """Whatever is in the file, it does nothing in the name of this server."""
        return "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None, view_key: str | None = None) -> None:
        """Send the file."""
        path = self.path_argument("path")
        if path is None:
            raise WireError("Say which file to view: ?path=/absolute/path", "path")
        link = await self.link(kernel_id)
        self.state.activity.touch()
        reply = await link.request("download_file", {"path": path})
        self.set_header("Content-Type", _type_of(str(reply.fields["name"])))
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        await self.send_pieces(link, reply.fields["id"])


def _type_of(name: str) -> str:
    kind, encoding = mimetypes.guess_type(name)
    if kind is None or encoding is not None:
        return BYTES
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
