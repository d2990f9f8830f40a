"""The endpoints of MCP: ``mcp``, ``mcp/sse``, ``mcp/messages/`` and ``update_mcp_server``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from tornado import web

from oh_jupyter.mcp_tools.toolbox import listed_scopes
from oh_jupyter.mcp_tools.tools_in_kernel import skills_listed
from oh_jupyter.operations import to_json
from oh_jupyter.operations.runtime import UpdateMcpServer
from oh_jupyter.server.handlers.base import SESSION_KEY_HEADER, OhHandler
from oh_jupyter.server.handlers.contract import (
    KERNEL_ERRORS,
    TEXT,
    Answer,
    Body,
    Contract,
    component,
    constrained,
    returns,
    whole,
)
from oh_jupyter.server.handlers.routes import EXECUTE_ACTIONS, RouteTable
from oh_jupyter.server.mcp.asgi import Exchange

_BEARER = "bearer "

routes = RouteTable((500,))


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


_EVENTS = {"text/event-stream": TEXT}
_MESSAGE = Body(component("JsonRpc"))

STREAM = Contract(
    (Answer("JSON-RPC messages until the session ends.", contents=_EVENTS),),
    refusals=(400, 404, 405, 406, 409, 421),
)


@routes.add("GET /mcp", EXECUTE_ACTIONS, "mcpStream", McpHandler, STREAM)
async def stream(handler: McpHandler, kernel_id: str | None = None) -> None:
    """Stream the MCP server's messages by streamable HTTP."""
    await handler.serve("http", kernel_id)


MESSAGE = Contract(
    (
        Answer("The response.", component("JsonRpc"), _EVENTS),
        Answer("A notification was accepted.", status=202),
    ),
    body=_MESSAGE,
    refusals=(400, 404, 406, 409, 413, 415, 421),
)


@routes.add("POST /mcp", EXECUTE_ACTIONS, "mcpMessage", McpHandler, MESSAGE)
async def message(handler: McpHandler, kernel_id: str | None = None) -> None:
    """Send a message to the MCP server by streamable HTTP."""
    await handler.serve("http", kernel_id)


END = Contract(returns("The session has ended."), refusals=STREAM.refusals)


@routes.add("DELETE /mcp", EXECUTE_ACTIONS, "mcpEnd", McpHandler, END)
async def end(handler: McpHandler, kernel_id: str | None = None) -> None:
    """End a session of streamable HTTP."""
    await handler.serve("http", kernel_id)


SSE = Contract(STREAM.answers, refusals=(421,))


@routes.add("GET /mcp/sse", EXECUTE_ACTIONS, "mcpSse", McpHandler, SSE)
async def sse(handler: McpHandler, kernel_id: str | None = None) -> None:
    """Open a session by SSE; its first event has the address for messages."""
    await handler.serve("sse", kernel_id)


@dataclass(frozen=True)
class SessionQuery:
    """The query of a message by SSE, which the SDK reads.

    Attributes:
        session_id: From the session's first event.
    """

    session_id: str


SSE_MESSAGE = Contract(
    (
        Answer(
            "Accepted; the session carries the response.",
            contents={"text/plain": TEXT},
            status=202,
        ),
    ),
    query=SessionQuery,
    body=_MESSAGE,
    refusals=(400, 404, 413, 415, 421),
)


@routes.add("POST /mcp/messages/", EXECUTE_ACTIONS, "mcpSseMessage", McpHandler, SSE_MESSAGE)
async def sse_message(handler: McpHandler, kernel_id: str | None = None) -> None:
    """Send a message to a session by SSE."""
    await handler.serve("messages", kernel_id)


@dataclass(frozen=True)
class McpServer:
    """An MCP server that is started as a program.

    Attributes:
        name: Its name.
        command: One word.
        args: An array, or one string that is split like in a shell.
        env: An object, or ``K=V,K2=V2``.
    """

    name: str = constrained(pattern=whole(r"[\w-]+"))
    command: str = constrained(pattern=whole(r"\S+"))
    args: list[str] | str | None = None
    env: dict[str, str] | str | None = field(default=None, metadata={"additionalProperties": TEXT})


@dataclass(frozen=True)
class UpdatedServers:
    """They run, except for those in the log.

    Attributes:
        detail: Always the same.
        router_error_log: Servers that did not start, with reasons; empty if all did.
    """

    router_error_log: str
    detail: Literal["MCP server updated successfully"] = "MCP server updated successfully"


UPDATE = Contract(
    returns("They run, except for those in the log.", UpdatedServers),
    body=Body(list[McpServer]),
    errors=(400,),
    kernel_errors=KERNEL_ERRORS,
)


@routes.add("POST /update_mcp_server", EXECUTE_ACTIONS, "updateMcpServer", contract=UPDATE)
async def update_mcp_server(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Set the MCP servers that run behind the kernel: exactly those in the body."""
    if not isinstance(handler.json_body(), list):
        raise web.HTTPError(400, "Request must be a list of MCP tools to sync")
    link = await handler.link(kernel_id)
    reply = await handler.ask_kernel(link, UpdateMcpServer(), body=handler.body)
    await handler.state.mcp.tools_changed(kernel_id)
    handler.finish_json(to_json(UpdatedServers(json.loads(reply.body or b'""'))))
