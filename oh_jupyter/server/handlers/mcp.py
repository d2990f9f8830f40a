"""The addresses of MCP: ``mcp``, ``mcp/sse``, ``mcp/messages/`` and ``update_mcp_server``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.server.handlers.base import SESSION_KEY_HEADER, OhHandler
from oh_jupyter.server.mcp.bridge import Exchange

if TYPE_CHECKING:
    from oh_jupyter.server.mcp.endpoints import Endpoints

__all__ = ["McpHandler", "McpMessagesHandler", "McpSseHandler", "UpdateMcpServerHandler"]

_BEARER = "bearer "


class _Base(OhHandler):
    """What the three share: who calls, and that the client may leave."""

    _exchange: Exchange | None = None
    _client_left = False

    async def prepare(self, **kwargs: Any) -> None:
        """Let clients in that send the session key as a bearer token, as OpenHands' do."""
        authorization = self.request.headers.get("Authorization", "")
        if authorization.lower().startswith(_BEARER) and not self._names_session_key():
            self.request.headers[SESSION_KEY_HEADER] = authorization[len(_BEARER) :].strip()
        await super().prepare(**kwargs)

    def _names_session_key(self) -> bool:
        return SESSION_KEY_HEADER in self.request.headers

    async def allowed(self, action: str, resource: str) -> bool:
        """Ask Jupyter's authorizer on behalf of a tool call, see ``toolbox.Caller``."""
        asked = self.authorizer.is_authorized(self, self.current_user, action, resource)
        return bool(await ensure_async(asked))

    async def serve(self, kernel_id: str | None, transport: str) -> None:
        """Hand the request to the endpoint.

        Args:
            kernel_id: An open kernel; None for the default one.
            transport: Name of the endpoint's method.
        """
        if kernel_id is not None:
            await self.link(kernel_id)
        endpoints: Endpoints = self.settings["oh_jupyter_mcp"]
        endpoint = await endpoints.get(kernel_id)
        self._exchange = Exchange(self, self.body)
        await getattr(endpoint, transport)(self._exchange, self)
        if not self._finished and not self._client_left:
            kind = self._headers.get("Content-Type", "application/json")
            self.finish(set_content_type=kind)

    def on_connection_close(self) -> None:
        """Note that the client has gone."""
        self._client_left = True
        if self._exchange is not None:
            self._exchange.gone.set()
        super().on_connection_close()


class McpHandler(_Base):
    """Streamable HTTP: POST a message, GET what the server has to say, DELETE the session."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Serve one request of the transport.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        await self.serve(kernel_id, "http")

    post = delete = get


class McpSseHandler(_Base):
    """The SSE transport's stream; its first event names where messages go."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def get(self, kernel_id: str | None = None) -> None:
        """Hold a session.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        await self.serve(kernel_id, "sse")


class McpMessagesHandler(_Base):
    """The SSE transport's other half."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Take a message.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        await self.serve(kernel_id, "messages")


class UpdateMcpServerHandler(OhHandler):
    """POST the MCP servers that are to run behind a kernel, as OpenHands' clients do."""

    @web.authenticated
    @authorized("execute", resource="oh_jupyter:actions")
    async def post(self, kernel_id: str | None = None) -> None:
        """Start, keep and stop servers, until there are those in the body and no others.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        servers = self.json_body()
        if not isinstance(servers, list):
            raise web.HTTPError(400, "Request must be a list of MCP tools to sync")
        link = await self.link(kernel_id)
        reply = await link.request("update_mcp_server", body=self.body)
        endpoints: Endpoints = self.settings["oh_jupyter_mcp"]
        await endpoints.tools_changed(kernel_id)
        self.finish_json(
            {
                "detail": "MCP server updated successfully",
                "router_error_log": str(reply.fields["router_error_log"]),
            }
        )
