"""MCP requests, passed on to the server of the user who authorized the client."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any
from urllib.parse import urljoin

import httpx
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.errors import OhJupyterError, ServerError
from oh_jupyter.hub.grants import ClientGrant
from oh_jupyter.hub.handlers import FAILURE, Endpoint
from oh_jupyter.hub.hub_client import (
    NotRunningError,
    UserServer,
    choose_server,
    may_start,
    servers_of,
)

CONNECT_SECONDS = 30.0

MAX_SESSIONS = 10_000

SERVER_ERROR = -32000
"""JSON-RPC's first code for errors of an implementation."""

REQUEST_HEADERS = frozenset(
    (
        *("accept", "content-type", "last-event-id", "user-agent"),
        *("traceparent", "tracestate", "baggage"),
    )
)
RESPONSE_HEADERS = frozenset(("content-type", "content-encoding", "cache-control", "retry-after"))
MCP_HEADERS = "mcp-"
"""Start of the headers of MCP, which pass in both directions; others, such as cookies, do not."""


class Sessions:
    """The server of each session, so that it stays there when another server starts."""

    def __init__(self) -> None:
        self._servers: OrderedDict[tuple[str, str], str] = OrderedDict()

    def server(self, user: str, session: str) -> str | None:
        """Return the name of a session's server, or None if it is unknown."""
        return self._servers.get((user, session))

    def add(self, user: str, session: str, server: str) -> None:
        """Remember a session's server."""
        self._servers[user, session] = server
        while len(self._servers) > MAX_SESSIONS:
            self._servers.popitem(last=False)


class _RejectedError(Exception):
    """A request without a valid token for its address."""


class Relay(Endpoint):
    """The MCP address of everyone, and below it those of named servers."""

    allows_other_origins = True
    _work: asyncio.Task[None] | None = None

    async def get(self, server: str = "") -> None:
        """Pass on the request for a stream."""
        await self._while_connected(server)

    async def post(self, server: str = "") -> None:
        """Pass on a message."""
        await self._while_connected(server)

    async def delete(self, server: str = "") -> None:
        """Pass on the end of a session."""
        await self._while_connected(server)

    async def _while_connected(self, server: str) -> None:
        """Pass on the request; cancel that when the client disconnects."""
        self._work = asyncio.ensure_future(self._serve(server))
        try:
            await self._work
        except asyncio.CancelledError:
            raise web.Finish from None

    def on_connection_close(self) -> None:
        """Cancel the request to the user's server, which cancels its work there."""
        if self._work is not None:
            self._work.cancel()

    async def _serve(self, name: str) -> None:
        try:
            grant = self._grant(name)
            target = await self._target(grant, name)
        except _RejectedError as error:
            code = "invalid_token" if "Authorization" in self.request.headers else ""
            challenge = self.state.addresses.challenge(name, code, code and str(error))
            self.set_status(401)
            self.set_header("WWW-Authenticate", challenge)
            self.finish({"error": code or "unauthorized", "error_description": str(error)})
            return
        try:
            await self._pass_on(grant, target)
        except httpx.HTTPError as error:
            raise ServerError(f"Your server cannot be reached: {error!r}", 502) from error

    def _grant(self, name: str) -> ClientGrant:
        """Return the record of the request's token, or raise _RejectedError."""
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        grant = self.state.tokens.find(token.strip()) if kind.lower() == "bearer" else None
        if grant is None:
            raise _RejectedError("The access token is missing, expired or revoked.")
        resource = self.state.addresses.resource_of(name)
        if resource != grant.resource and not resource.startswith(f"{grant.resource}/"):
            raise _RejectedError(f"The access token is for {grant.resource} only.")
        return grant

    async def _target(self, grant: ClientGrant, name: str) -> UserServer:
        """Return the server for the request, or raise _RejectedError or ServerError.

        The hub is asked each time: what a person revokes there ends at once.
        """
        hub, token = self.state.hub, grant.hub.hub_token
        user = await hub.user(token)
        if user is None or user["name"] != grant.user:
            self.state.tokens.revoke_family(grant.family)
            raise _RejectedError("The hub has ended this authorization.")
        if not name and (session := self.request.headers.get("Mcp-Session-Id")):
            name = self.sessions.server(grant.user, session) or ""
            if (earlier := servers_of(user).get(name)) and earlier.is_ready:
                return earlier
        hub_url = self.state.settings.hub_url
        try:
            return choose_server(user, name, hub_url)
        except NotRunningError as error:
            if error.server or not may_start(user):
                raise
        await hub.start(grant.user, token)
        return choose_server(await hub.user(token) or {}, name, hub_url)

    @property
    def sessions(self) -> Sessions:
        """Servers of the sessions."""
        sessions: Sessions = self.settings["sessions"]
        return sessions

    async def _pass_on(self, grant: ClientGrant, target: UserServer) -> None:
        """Send the request to a server, and its response to the client as it arrives."""
        client: httpx.AsyncClient = self.settings["http"]
        headers = {
            name: value
            for name, value in self.request.headers.get_all()
            if name.lower() in REQUEST_HEADERS or name.lower().startswith(MCP_HEADERS)
        }
        headers |= {
            "Authorization": f"token {grant.hub.hub_token}",
            "Accept-Encoding": "identity",
        }
        address = urljoin(self.state.settings.servers_url, target.url).rstrip("/")
        skills = self.get_query_argument("skills", None)
        async with client.stream(
            self.request.method or "GET",
            f"{address}/oh_jupyter/mcp",
            params={} if skills is None else {"skills": skills},
            headers=headers,
            content=self.request.body,
        ) as response:
            self._check(response, target)
            self.set_status(response.status_code)
            for name, value in response.headers.multi_items():
                if name in RESPONSE_HEADERS or name.startswith(MCP_HEADERS):
                    self.set_header(name, value)
            if session := response.headers.get("mcp-session-id"):
                self.sessions.add(grant.user, session, target.name)
            try:
                # A stream may have its first event much later.
                await self.flush()
                async for piece in response.aiter_raw():
                    self.write(piece)
                    await self.flush()
            except StreamClosedError:
                pass

    def _check(self, response: httpx.Response, target: UserServer) -> None:
        """Raise ServerError for a response that the hub sent instead of the server."""
        label = target.name or "default"
        if response.status_code in (424, 503) and "x-jupyterhub-version" in response.headers:
            raise NotRunningError(
                f"Your server {label!r} has just stopped. Start it at "
                f"{self.state.settings.hub_url}home, and try again",
                target.name,
            )
        is_html = response.headers.get("content-type", "").startswith("text/html")
        if response.is_redirect or (response.status_code == 404 and is_html):
            raise ServerError(
                f"Your server {label!r} has no oh_jupyter. Install it in the server's environment, "
                "and restart it",
                502,
            )

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send an error that MCP clients show: a JSON-RPC response without an id."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if self._headers_written:  # only a broken connection reports the failure
            connection: Any = self.request.connection
            connection.stream.close()
            return
        message = FAILURE
        if isinstance(error, OhJupyterError):
            message = str(error)
            self.set_status(error.status if isinstance(error, ServerError) else 503)
        elif isinstance(error, web.HTTPError):
            message = str(error.reason or error.log_message or "")
        self.finish(
            {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": SERVER_ERROR, "message": message},
                "detail": message,
            }
        )


def relay_client() -> httpx.AsyncClient:
    """Return the client for users' servers; a response may take as long as a cell runs."""
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False)
