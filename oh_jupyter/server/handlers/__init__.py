"""The REST endpoints and their addresses."""

from tornado import web

from oh_jupyter.server.handlers import e2b
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import READ_ACTIONS, Route, handler_class
from oh_jupyter.server.handlers.tables import KERNEL_TABLES, SERVER_TABLES

__all__ = ["HANDLERS"]


async def _not_found(handler: OhHandler) -> None:
    """Send 404, to authorized users only."""
    raise web.HTTPError(404, "Not Found")


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

NotFoundHandler = handler_class(
    *(Route(method, READ_ACTIONS, "", _not_found) for method in METHODS)
)
NotOfE2BHandler = handler_class(
    *(Route(method, READ_ACTIONS, "", e2b.refuse, e2b.E2BHandler) for method in METHODS)
)

HANDLERS: list[tuple[str, type[OhHandler]]] = [
    *(each for table in SERVER_TABLES for each in table.handlers("/oh_jupyter")),
    *(
        each
        for prefix in ("/oh_jupyter", r"/oh_jupyter/kernels/(?P<kernel_id>[\w-]+)")
        for table in KERNEL_TABLES
        for each in table.handlers(prefix)
    ),
    (r"/oh_jupyter/(?:kernels/[\w-]+/)?e2b(?:/.*)?", NotOfE2BHandler),
    (r"/oh_jupyter(?:/.*)?", NotFoundHandler),
]
"""Patterns below the server's base address, and their handlers."""
