"""The endpoints of MCP: ``mcp``, ``mcp/sse``, ``mcp/messages/`` and ``update_mcp_server``."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from tornado import web

from oh_jupyter.mcp_tools.toolbox import listed_scopes
from oh_jupyter.mcp_tools.tools_in_kernel import skills_listed
from oh_jupyter.operations.runtime import UpdateMcpServer
from oh_jupyter.server.handlers.base import SESSION_KEY_HEADER, OhHandler
from oh_jupyter.server.handlers.routes import EXECUTE_ACTIONS, RouteTable
from oh_jupyter.server.mcp.asgi import Exchange

_BEARER = "bearer "

routes = RouteTable()


class McpHandler(OhHandler):
    """Handler of a request to an MCP transport."""

    _exchange: Exchange | None = None

    async def admit(self, **kwargs: Any) -> None:
        """Accept the session key as a bearer token, as OpenHands' clients send it."""
        authorization = self.request.headers.get("Authorization", "")
        has_key = SESSION_KEY_HEADER in self.request.headers
        if authorization.lower().startswith(_BEARER) and not has_key:
            self.request.headers[SESSION_KEY_HEADER] = authorization[len(_BEARER) :].strip()
        await super().admit(**kwargs)

    async def serve(self, transport: str, kernel_id: str | None = None) -> None:
        """Pass the request to the MCP endpoint of a kernel."""
        kernel_id = await self.kernel_of(kernel_id)
        if kernel_id is not None:
            await self.link(kernel_id)
        endpoint = await self.state.mcp.get(kernel_id)
        listed_scopes.set(self.scopes)
        skills_listed.set(self.state.mcp.list_skills or self.flag("skills"))
        self._exchange = Exchange(self, self.body)
        await endpoint.serve(transport, self._exchange, self)
        if not self._finished and not self.client_has_left:
            kind = self._headers.get("Content-Type", "application/json")
            self.finish(set_content_type=kind)

    def on_connection_close(self) -> None:
        """Tell the SDK that the client has disconnected."""
        if self._exchange is not None:
            self._exchange.gone.set()
        super().on_connection_close()


for _address, _name, _transport in (
    ("GET /mcp", "mcpStream", "http"),
    ("POST /mcp", "mcpMessage", "http"),
    ("DELETE /mcp", "mcpEnd", "http"),
    ("GET /mcp/sse", "mcpSse", "sse"),
    ("POST /mcp/messages/", "mcpSseMessage", "messages"),
):
    _serve = partial(McpHandler.serve, transport=_transport)
    routes.add(_address, EXECUTE_ACTIONS, _name, McpHandler)(_serve)


@routes.add("POST /update_mcp_server", EXECUTE_ACTIONS, "updateMcpServer")
async def update_mcp_server(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Start and stop MCP servers behind a kernel until exactly those in the body run."""
    if not isinstance(handler.json_body(), list):
        raise web.HTTPError(400, "Request must be a list of MCP tools to sync")
    link = await handler.link(kernel_id)
    reply = await handler.ask_kernel(link, UpdateMcpServer(), body=handler.body)
    await handler.state.mcp.tools_changed(kernel_id)
    handler.finish_json(
        {
            "detail": "MCP server updated successfully",
            "router_error_log": json.loads(reply.body or b'""'),
        }
    )
