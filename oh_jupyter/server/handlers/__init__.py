"""The REST endpoints, and the addresses where they are."""

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.actions import (
    ExecuteActionHandler,
    ListFilesHandler,
    RequestHandler,
    UnsavedHandler,
)
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.events import EventHandler, EventsHandler
from oh_jupyter.server.handlers.files import (
    DownloadHandler,
    StoreHandler,
    UploadHandler,
    ViewHandler,
)
from oh_jupyter.server.handlers.info import AliveHandler, OpenApiHandler, ServerInfoHandler
from oh_jupyter.server.handlers.mcp import (
    McpHandler,
    McpMessagesHandler,
    McpSseHandler,
    UpdateMcpServerHandler,
)
from oh_jupyter.server.handlers.runtime import (
    CheckpointsHandler,
    ConfirmationsHandler,
    ConfirmHandler,
    MarksHandler,
    RewindHandler,
    ScreenshotHandler,
    SkillsHandler,
    VSCodeHandler,
    VSCodeTokenHandler,
)

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
_OF_A_KERNEL: list[tuple[str, type[OhHandler]]] = [
    (r"/alive", AliveHandler),
    (r"/server_info", ServerInfoHandler),
    (r"/execute_action", ExecuteActionHandler),
    (r"/list_files", ListFilesHandler),
    (r"/upload_file", UploadHandler),
    (r"/download_files", DownloadHandler),
    (r"/view", ViewHandler),
    (r"/events", EventsHandler),
    (r"/events/(?P<event_id>\d{1,15})", EventHandler),
    (r"/confirmations", ConfirmationsHandler),
    (r"/confirmations/(?P<event_id>\d{1,15})", ConfirmHandler),
    (r"/checkpoints", CheckpointsHandler),
    (r"/rewind", RewindHandler),
    (r"/skills", SkillsHandler),
    (r"/store/(?P<path>.*)", StoreHandler),
    (r"/browser/(?P<kind>screenshot|set_of_marks)", ScreenshotHandler),
    (r"/browser/marks", MarksHandler),
    (r"/mcp", McpHandler),
    (r"/mcp/sse", McpSseHandler),
    (r"/mcp/messages/", McpMessagesHandler),
    (r"/update_mcp_server", UpdateMcpServerHandler),
    (r"/vscode", VSCodeHandler),
    (r"/vscode/connection_token", VSCodeTokenHandler),
]

HANDLERS: list[tuple[str, type[OhHandler]]] = [
    (r"/oh_jupyter/openapi\.yaml", OpenApiHandler),
    (r"/oh_jupyter/unsaved", UnsavedHandler),
    (r"/oh_jupyter/requests/(?P<key>[^/]+)", RequestHandler),
    (r"/oh_jupyter/viewer/(?P<view_key>[\w-]+)/view", ViewHandler),
    *((f"/oh_jupyter{path}", handler) for path, handler in _OF_A_KERNEL),
    *(
        (rf"/oh_jupyter/kernels/(?P<kernel_id>[\w-]+){path}", handler)
        for path, handler in _OF_A_KERNEL
    ),
    (r"/oh_jupyter(?:/.*)?", NotFoundHandler),
]
"""Patterns below the server's base address, and their handlers."""
