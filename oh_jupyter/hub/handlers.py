"""Endpoints of OAuth: discovery, registration, authorization with its pages, tokens."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from tornado import web

from oh_jupyter.errors import AuthorizationError, OhJupyterError
from oh_jupyter.hub.clients import is_loopback
from oh_jupyter.hub.grants import ReusedCodeError
from oh_jupyter.hub.pages import SECURITY_HEADERS, consent_page, error_page, front_page
from oh_jupyter.hub.state import ServiceState

COOKIE = "oh-jupyter-hub"
"""Name of the cookie that binds a request to the browser that opened it."""

COOKIE_SECONDS = 600

FAILURE = "An unexpected error occurred in the service; its log has the details."


class Endpoint(web.RequestHandler):
    """A handler with the state of the service; errors are JSON as OAuth defines it."""

    allows_other_origins = False

    @property
    def state(self) -> ServiceState:
        """State of the service."""
        state: ServiceState = self.settings["state"]
        return state

    def set_default_headers(self) -> None:
        """Forbid caches; let pages of other origins call endpoints that need no cookie."""
        self.set_header("Cache-Control", "no-store")
        if self.allows_other_origins:
            self.set_header("Access-Control-Allow-Origin", "*")
            self.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE")
            self.set_header("Access-Control-Allow-Headers", "*, Authorization")
            self.set_header("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id")

    def options(self, *args: Any) -> None:
        """Respond to a browser that asks what is allowed."""
        self.set_status(204)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send an error of OAuth."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        code, description = "server_error", FAILURE
        if isinstance(error, AuthorizationError):
            code, description = error.code, str(error)
            self.set_status(error.status)
        elif isinstance(error, OhJupyterError):
            code, description = "temporarily_unavailable", str(error)
            self.set_status(503)
        elif isinstance(error, web.HTTPError):
            code, description = "invalid_request", str(error.reason or error.log_message or "")
        self.finish({"error": code, "error_description": description})

    def log_exception(self, *exc_info: Any) -> None:
        """Log unexpected errors; the caller's own mistakes are in the response."""
        if not isinstance(exc_info[1], OhJupyterError | web.HTTPError):
            super().log_exception(*exc_info)

    def params(self, arguments: Mapping[str, list[bytes]]) -> dict[str, str]:
        """Return parameters, or raise AuthorizationError if one is repeated, as OAuth requires."""
        repeated = sorted(name for name, values in arguments.items() if len(values) > 1)
        if repeated:
            raise AuthorizationError("invalid_request", f"{repeated[0]} occurs more than once.")
        try:
            return {name: values[0].decode() for name, values in arguments.items()}
        except UnicodeDecodeError:
            raise AuthorizationError("invalid_request", "The request is not UTF-8.") from None


class IssuerMetadata(Endpoint):
    """Metadata of the authorization server."""

    allows_other_origins = True

    def get(self) -> None:
        """Send it."""
        has_documents = self.state.settings.has_client_documents
        self.finish(self.state.addresses.describe_issuer(has_documents=has_documents))


class ResourceMetadata(Endpoint):
    """Metadata of the protected resource."""

    allows_other_origins = True

    def get(self, server: str = "") -> None:
        """Send it; ``server`` is the name of a named server."""
        self.finish(self.state.addresses.describe_resource(server))


class Keys(Endpoint):
    """Keys of ID tokens, of which there are none."""

    allows_other_origins = True

    def get(self) -> None:
        """Send the empty set."""
        self.finish({"keys": []})


class Registration(Endpoint):
    """Dynamic registration of clients."""

    allows_other_origins = True

    def post(self) -> None:
        """Register a client."""
        try:
            metadata = json.loads(self.request.body)
        except ValueError:
            raise AuthorizationError("invalid_client_metadata", "The body is not JSON.") from None
        _, response = self.state.clients.register(metadata)
        self.set_status(201)
        self.finish(response)


class Tokens(Endpoint):
    """The token endpoint."""

    allows_other_origins = True

    def post(self) -> None:
        """Exchange a code or a refresh token."""
        params = self.params(self.request.body_arguments)
        client_id = self.state.client_id(params.get("client_id", ""))
        kind = params.get("grant_type", "")
        if kind == "authorization_code":
            response = self._redeem(client_id, params)
        elif kind == "refresh_token":
            resource = self.state.grants.resource_of(params) if "resource" in params else None
            token = params.get("refresh_token", "")
            response = self.state.tokens.refresh(client_id, token, resource)
        elif kind:
            raise AuthorizationError("unsupported_grant_type", f"{kind} is not supported.")
        else:
            raise AuthorizationError("invalid_request", "grant_type is missing.")
        self.set_header("Pragma", "no-cache")
        self.finish(response)

    def _redeem(self, client_id: str, params: Mapping[str, str]) -> dict[str, Any]:
        try:
            request, grant = self.state.grants.redeem(client_id, params)
        except ReusedCodeError as error:
            self.state.tokens.revoke_family(error.family)
            raise
        family, response = self.state.tokens.issue(client_id, request.resource, grant)
        self.state.grants.redeemed(params["code"], family)
        return response


class Revocation(Endpoint):
    """Revocation of a token by its client (RFC 7009)."""

    allows_other_origins = True

    def post(self) -> None:
        """Revoke a token with all tokens of its authorization."""
        params = self.params(self.request.body_arguments)
        client_id = self.state.client_id(params.get("client_id", ""))
        if "token" not in params:
            raise AuthorizationError("invalid_request", "token is missing.")
        self.state.tokens.revoke(client_id, params["token"])


class Page(Endpoint):
    """A page for the person; errors are pages as well."""

    def set_default_headers(self) -> None:
        """Forbid caches, frames, scripts and referrers."""
        for name, value in SECURITY_HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Show the error."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = FAILURE
        if isinstance(error, OhJupyterError):
            message = str(error)
            self.set_status(400 if isinstance(error, AuthorizationError) else 503)
        elif isinstance(error, web.HTTPError):
            message = str(error.reason or error.log_message or "")
        self.set_header("Content-Type", "text/html; charset=UTF-8")
        self.finish(error_page(message))

    @property
    def nonce(self) -> str:
        """The value of the browser's cookie, or ""."""
        return self.get_cookie(COOKIE) or ""

    def bind_browser(self) -> str:
        """Set the browser's cookie, and return its value."""
        nonce = self.nonce if len(self.nonce) >= 43 else secrets.token_urlsafe(32)
        settings = self.state.settings
        self.set_cookie(
            COOKIE,
            nonce,
            path=settings.prefix,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Lax",
            secure=settings.base.startswith("https:"),
        )
        return nonce

    def send_to_client(self, redirect_uri: str, params: Mapping[str, str | None]) -> None:
        """Redirect the browser to a client, with the issuer (RFC 9207)."""
        parts = urlsplit(redirect_uri)
        query = [(name, value) for name, all in parse_qs(parts.query).items() for value in all]
        query += [(name, value) for name, value in params.items() if value is not None]
        query.append(("iss", self.state.addresses.issuer))
        self.set_status(303)
        self.set_header("Location", urlunsplit(parts._replace(query=urlencode(query))))


class FrontPage(Page):
    """The page in the hub's list of services."""

    def get(self) -> None:
        """Show the address."""
        self.finish(front_page(self.state.addresses.resource))


class Authorization(Page):
    """The authorization endpoint."""

    async def get(self) -> None:
        """Check a client's request, and send its person to the hub's log-in."""
        params = self.params(self.request.query_arguments)
        client = await self.state.client(params.get("client_id", ""))
        redirect_uri = params.get("redirect_uri", "")
        if not client.allows(redirect_uri):
            raise AuthorizationError(
                "invalid_request",
                f"{client.name or 'The client'} has not registered the address to which it wants "
                f"to send you: {redirect_uri or 'it names none'}.",
            )
        try:
            key = self.state.grants.begin(client, params, self.bind_browser())
        except AuthorizationError as error:
            if not is_loopback(redirect_uri):
                # Anyone can register an address: a link to us must not lead there unseen.
                raise
            self.send_to_client(
                redirect_uri,
                {
                    "error": error.code,
                    "error_description": str(error),
                    "state": params.get("state"),
                },
            )
            return
        query = self.state.hub.login_query(key)
        self.redirect(f"{self.state.settings.hub_url}api/oauth2/authorize?{query}")


class LoginCallback(Page):
    """The address to which the hub sends people after their log-in."""

    async def get(self) -> None:
        """Get the hub's token for the user, and ask them about the client."""
        params = self.params(self.request.query_arguments)
        key = params.get("state", "")
        self.state.grants.pending(key, self.nonce)
        if "code" not in params:
            reason = params.get("error_description") or params.get("error") or "no reason given"
            raise AuthorizationError("access_denied", f"The hub did not log you in: {reason}")
        grant = await self.state.hub.exchange(params["code"])
        key = self.state.grants.logged_in(key, self.nonce, grant)
        self.redirect(f"{self.state.settings.prefix}consent?{urlencode({'request': key})}")


class Consent(Page):
    """The question to the person."""

    def get(self) -> None:
        """Show it."""
        key = self.params(self.request.query_arguments).get("request", "")
        request = self.state.grants.pending(key, self.nonce)
        self.finish(consent_page(request, key, f"{self.state.settings.prefix}consent"))

    def post(self) -> None:
        """Send the decision to the client."""
        # A script on the hub's origin, such as one in another user's page, cannot set this header.
        if self.request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            raise AuthorizationError("invalid_request", "Only the page itself can decide.")
        params = self.params(self.request.body_arguments)
        request, code = self.state.grants.decide(
            params.get("request", ""), self.nonce, allow=params.get("decision") == "allow"
        )
        result = {"code": code} if code else {"error": "access_denied"}
        self.send_to_client(request.redirect_uri, {**result, "state": request.state})
