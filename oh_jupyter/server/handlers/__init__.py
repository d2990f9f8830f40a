"""The REST endpoints, and the addresses where they are."""

from typing import Any

from oh_jupyter.server.handlers.actions import ExecuteActionHandler, ListFilesHandler
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.events import EventHandler, EventsHandler
from oh_jupyter.server.handlers.info import Activity, AliveHandler, ServerInfoHandler

__all__ = ["HANDLERS", "Activity"]


class NotFoundHandler(OhHandler):
    """Everything else under our address."""

    async def prepare(self, **kwargs: Any) -> None:
        """Say that there is nothing, once it is clear who asks."""
        await super().prepare(**kwargs)
        if not self._finished:
            self.send_error(404 if self.current_user is not None else 403)


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
]
"""Patterns below the server's base address, and their handlers."""
