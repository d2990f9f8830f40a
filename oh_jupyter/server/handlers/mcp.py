"""The addresses of MCP: ``mcp``, ``mcp/sse``, ``mcp/messages/`` and ``update_mcp_server``."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.base import SESSION_KEY_HEADER, OhHandler, Routes
from oh_jupyter.server.mcp.asgi import Exchange
from oh_jupyter.server.mcp.toolbox import skills_shown

_BEARER = "bearer "


class _Base(OhHandler):
    """What the three share: who calls, and that the client may leave."""

    _exchange: Exchange | None = None

    async def admit(self, **kwargs: Any) -> None:
        """Let clients in that send the session key as a bearer token, as OpenHands' do."""
        authorization = self.request.headers.get("Authorization", "")
        shows_key = SESSION_KEY_HEADER in self.request.headers
        if authorization.lower().startswith(_BEARER) and not shows_key:
            self.request.headers[SESSION_KEY_HEADER] = authorization[len(_BEARER) :].strip()
        await super().admit(**kwargs)

    async def serve(self, kernel_id: str | None, transport: str) -> None:
        """Hand the request to the endpoint."""
        if kernel_id is not None:
            await self.link(kernel_id)
        endpoint = await self.state.mcp.get(kernel_id)
        skills_shown.set(self.state.mcp.list_skills or self.flag("skills"))
        self._exchange = Exchange(self, self.body)
        await getattr(endpoint, transport)(self._exchange, self)
        if not self._finished and not self.client_has_left:
            kind = self._headers.get("Content-Type", "application/json")
            self.finish(set_content_type=kind)

    def on_connection_close(self) -> None:
        """Tell the SDK that the client has gone."""
        if self._exchange is not None:
            self._exchange.gone.set()
        super().on_connection_close()


class McpHandler(_Base):
    """Streamable HTTP: POST a message, GET what the server has to say, DELETE the session."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Serve one request of the transport."""
        await self.serve(kernel_id, "http")

    post = delete = get


class McpSseHandler(_Base):
    """The SSE transport's stream; its first event names where messages go."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Hold a session."""
        await self.serve(kernel_id, "sse")


class McpMessagesHandler(_Base):
    """The SSE transport's other half."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Take a message."""
        await self.serve(kernel_id, "messages")


class UpdateMcpServerHandler(OhHandler):
    """POST the MCP servers that are to run behind a kernel, as OpenHands' clients do."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Start, keep and stop servers, until there are those in the body and no others."""
        servers = self.json_body()
        if not isinstance(servers, list):
            raise web.HTTPError(400, "Request must be a list of MCP tools to sync")
        reply = await self.ask(kernel_id, "update_mcp_server", body=self.body)
        await self.state.mcp.tools_changed(kernel_id)
        self.finish_json(
            {
                "detail": "MCP server updated successfully",
                "router_error_log": str(reply.fields["router_error_log"]),
            }
        )


KERNEL_ROUTES: Routes = [
    (r"/mcp", McpHandler),
    (r"/mcp/sse", McpSseHandler),
    (r"/mcp/messages/", McpMessagesHandler),
    (r"/update_mcp_server", UpdateMcpServerHandler),
]
