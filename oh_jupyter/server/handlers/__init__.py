"""The REST endpoints, and the addresses where they are."""

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.actions import ExecuteActionHandler, ListFilesHandler
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.events import EventHandler, EventsHandler
from oh_jupyter.server.handlers.info import Activity, AliveHandler, ServerInfoHandler

__all__ = ["HANDLERS", "Activity"]


class NotFoundHandler(OhHandler):
    """Every other address below ours: 404, but only for those who may know."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:actions")
    async def get(self) -> None:
        """Say that there is nothing."""
        raise web.HTTPError(404, "Not Found")

    post = put = patch = delete = get


_KERNEL = r"/oh_jupyter/kernels/(?P<kernel_id>[\w-]+)"

HANDLERS: list[tuple[str, type[OhHandler]]] = [
    (r"/oh_jupyter/alive", AliveHandler),
    (r"/oh_jupyter/server_info", ServerInfoHandler),
    (r"/oh_jupyter/execute_action", ExecuteActionHandler),
    (r"/oh_jupyter/list_files", ListFilesHandler),
    (rf"{_KERNEL}/execute_action", ExecuteActionHandler),
    (rf"{_KERNEL}/list_files", ListFilesHandler),
    (rf"{_KERNEL}/events", EventsHandler),
    (rf"{_KERNEL}/events/(?P<event_id>\d+)", EventHandler),
    (r"/oh_jupyter(?:/.*)?", NotFoundHandler),
]
"""Patterns below the server's base address, and their handlers."""
