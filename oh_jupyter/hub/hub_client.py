"""The hub's own interface: log-in of a user, their servers, and the start of one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from oh_jupyter.errors import AuthorizationError, ServerError
from oh_jupyter.hub.grants import HubGrant

TIMEOUT_SECONDS = 30.0

DEFAULT_LIFETIME_SECONDS = 3600.0
"""Lifetime of a hub's token if the hub names none."""


@dataclass(frozen=True)
class UserServer:
    """A user's server: its name, "" for the default one, and its path or address."""

    name: str
    url: str
    is_ready: bool


class NotRunningError(ServerError):
    """The chosen server of a user does not run."""

    def __init__(self, message: str, server: str) -> None:
        """Name the server."""
        super().__init__(message, 503)
        self.server = server


def servers_of(user: Mapping[str, Any]) -> dict[str, UserServer]:
    """Return the running servers in the hub's model of a user, or raise ServerError."""
    if "servers" not in user:
        raise ServerError(
            "The hub does not list your servers. Its administrator must add read:servers!user to "
            "oauth_client_allowed_scopes of this service",
            503,
        )
    return {
        name: UserServer(name, model.get("full_url") or model["url"], bool(model["ready"]))
        for name, model in user["servers"].items()
    }


def choose_server(user: Mapping[str, Any], name: str, hub_url: str) -> UserServer:
    """Return the server with a name, or for "" the only running one, else the default one.

    Raises NotRunningError, whose message says how to start it.
    """
    servers = servers_of(user)
    ready = [server for server in servers.values() if server.is_ready]
    if not name and len(ready) == 1:
        return ready[0]
    server = servers.get(name)
    if server is not None and server.is_ready:
        return server
    running = ", ".join(sorted(each.name or "the default one" for each in ready)) or "none"
    label = f"Your server {name!r}" if name else "Your server"
    state = "is still starting" if server is not None else "is not running"
    raise NotRunningError(
        f"{label} {state} (running: {running}). Start it at {hub_url}home, and try again", name
    )


def may_start(user: Mapping[str, Any]) -> bool:
    """Return whether the token of a user's model allows the start of their servers."""
    own = {"servers", f"servers!user={user['name']}"}
    return not own.isdisjoint(user.get("scopes") or ())


class HubClient:
    """Requests to the hub's API as its service, and as its users."""

    def __init__(self, api_url: str, client_id: str, secret: str, redirect_uri: str) -> None:
        """Take the addresses and the credentials of the service."""
        self._api_url = api_url.rstrip("/")
        self._client_id = client_id
        self._secret = secret
        self._redirect_uri = redirect_uri
        self._http = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def login_query(self, state: str) -> str:
        """Return the query of the hub's page that asks a person to log in."""
        return urlencode(
            {
                "client_id": self._client_id,
                "redirect_uri": self._redirect_uri,
                "response_type": "code",
                "state": state,
            }
        )

    async def exchange(self, code: str) -> HubGrant:
        """Exchange the hub's code for a token of its user; raise AuthorizationError if invalid."""
        response = await self._send(
            "POST",
            "oauth2/token",
            data={
                "client_id": self._client_id,
                "client_secret": self._secret,
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self._redirect_uri,
            },
        )
        if not response.is_success:
            raise AuthorizationError(
                "access_denied", f"The hub rejects its own code ({response.status_code})."
            )
        reply = response.json()
        user = await self.user(reply["access_token"])
        if user is None:
            raise AuthorizationError("access_denied", "The hub does not know the user.")
        lifetime = float(reply.get("expires_in") or DEFAULT_LIFETIME_SECONDS)
        return HubGrant(user["name"], reply["access_token"], time.time() + lifetime)

    async def user(self, token: str) -> dict[str, Any] | None:
        """Return the model of a token's user, or None if the token is no longer valid."""
        response = await self._send("GET", "user", token=token)
        if response.status_code in (401, 403, 404):
            return None
        if not response.is_success:
            raise ServerError(f"The hub answers {response.status_code}. Try again later", 503)
        model: dict[str, Any] = response.json()
        return model if model.get("kind", "user") == "user" else None

    async def start(self, user: str, token: str) -> None:
        """Start a user's default server and wait until it is ready, or raise ServerError."""
        path = f"users/{quote(user, safe='')}/server"
        response = await self._send("POST", path, token=token)
        # 400: it is starting or running already.
        if not response.is_success and response.status_code != 400:
            raise ServerError(f"The hub does not start your server ({response.status_code})", 503)
        address = f"{self._api_url}/{path}/progress"
        headers = {"Authorization": f"token {token}", "Accept": "text/event-stream"}
        try:
            async with self._http.stream("GET", address, headers=headers, timeout=None) as events:
                async for line in events.aiter_lines():
                    event = json.loads(line[5:]) if line.startswith("data:") else {}
                    if event.get("ready"):
                        return
                    if event.get("failed"):
                        raise ServerError(f"Your server failed to start: {event['message']}", 503)
        except httpx.HTTPError as error:
            raise ServerError(f"The start of your server is unknown: {error!r}", 503) from error
        raise ServerError("The hub does not report the start of your server. Try again", 503)

    async def _send(
        self, method: str, path: str, token: str = "", **options: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"token {token}"} if token else {}
        address = f"{self._api_url}/{path}"
        try:
            return await self._http.request(method, address, headers=headers, **options)
        except httpx.HTTPError as error:
            raise ServerError(f"The hub cannot be reached: {error!r}. Try again", 503) from error
