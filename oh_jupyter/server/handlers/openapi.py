"""``openapi.yaml``: what there is at which address."""

from __future__ import annotations

from functools import cache

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.schemas import OPENAPI

__all__ = ["OpenApiHandler"]


@cache
def _contents() -> bytes:
    return OPENAPI.read_bytes()


class OpenApiHandler(OhHandler):
    """GET the description of the REST interface."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self) -> None:
        """Send it as YAML (RFC 9512)."""
        self.finish(_contents(), set_content_type="application/yaml")
