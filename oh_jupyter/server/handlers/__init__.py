"""The REST endpoints, and the addresses where they are."""

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers import actions, events, files, info, mcp, runtime
from oh_jupyter.server.handlers.base import OhHandler, Routes

__all__ = ["HANDLERS"]


class NotFoundHandler(OhHandler):
    """Every other address below ours: 404, but only for those who may know."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self) -> None:
        """Say that there is nothing."""
        raise web.HTTPError(404, "Not Found")

    post = put = patch = delete = get


# On the default kernel, and on an open notebook's.
_OF_A_KERNEL = [
    route
    for module in (actions, events, files, info, mcp, runtime)
    for route in module.KERNEL_ROUTES
]

HANDLERS: Routes = [
    *(
        (f"/oh_jupyter{path}", handler)
        for module in (actions, files, info)
        for path, handler in module.SERVER_ROUTES
    ),
    *((f"/oh_jupyter{path}", handler) for path, handler in _OF_A_KERNEL),
    *(
        (rf"/oh_jupyter/kernels/(?P<kernel_id>[\w-]+){path}", handler)
        for path, handler in _OF_A_KERNEL
    ),
    (r"/oh_jupyter(?:/.*)?", NotFoundHandler),
]
"""Patterns below the server's base address, and their handlers."""
