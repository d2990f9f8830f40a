"""Settings and state of the running service, and documents that tell clients how to authorize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from oh_jupyter.errors import ConfigError
from oh_jupyter.hub.clients import (
    LOOPBACK,
    ClientDocuments,
    ClientRegistry,
    OAuthClient,
    is_document_address,
)
from oh_jupyter.hub.grants import Grants, TokenStore
from oh_jupyter.hub.hub_client import HubClient


@dataclass(frozen=True)
class HubSettings:
    """Addresses and credentials of a service.

    Attributes:
        base: Public address of the service.
        hub_url: Public address of the hub, with a slash at the end.
        api_url: Address of the hub's API for the service.
        servers_url: Origin through which the service reaches users' servers.
        prefix: Path of the service, with slashes at both ends.
        client_id: Id of the hub's OAuth client for the service.
        api_token: Secret of this client.
        redirect_uri: Where the hub sends people after the log-in, as it is configured there.
        host: Address to listen on, "" for all interfaces.
        port: Port to listen on.
        database: File of the tokens.
        has_client_documents: Whether clients may be known by a document, which is fetched.
    """

    base: str
    hub_url: str
    api_url: str
    servers_url: str
    prefix: str
    client_id: str
    api_token: str
    redirect_uri: str
    host: str
    port: int
    database: Path
    has_client_documents: bool = True

    @property
    def is_reachable_by_clients(self) -> bool:
        """Whether MCP clients accept the address: HTTPS, or this machine."""
        parts = urlsplit(self.base)
        return parts.scheme == "https" or parts.hostname in LOOPBACK


def hub_settings(
    environment: Mapping[str, str],
    *,
    public_url: str | None,
    servers_url: str | None,
    database: Path,
    has_client_documents: bool = True,
) -> HubSettings:
    """Return the settings of a service that a hub has started, or raise ConfigError."""

    def required(name: str) -> str:
        if value := environment.get(name, ""):
            return value
        raise ConfigError(
            f"{name} is not set. JupyterHub sets it for a service with an url: add this command to "
            "c.JupyterHub.services, see docs/how-to/jupyterhub.md"
        )

    prefix = required("JUPYTERHUB_SERVICE_PREFIX")
    base = environment.get("JUPYTERHUB_PUBLIC_URL", "")
    hub_url = environment.get("JUPYTERHUB_PUBLIC_HUB_URL", "")
    if public_url is not None:
        origin = _origin(public_url)
        base = base or origin + prefix
        hub_url = hub_url or f"{origin}{environment.get('JUPYTERHUB_BASE_URL') or '/'}hub/"
    if not base or not hub_url:
        raise ConfigError(
            "the hub does not state its public address. Set c.JupyterHub.public_url, or pass "
            "--public-url https://hub.example.org"
        )
    listen = urlsplit(required("JUPYTERHUB_SERVICE_URL"))
    return HubSettings(
        base=base.rstrip("/"),
        hub_url=hub_url.rstrip("/") + "/",
        api_url=required("JUPYTERHUB_API_URL"),
        servers_url=_origin(servers_url or hub_url),
        prefix=prefix,
        client_id=required("JUPYTERHUB_CLIENT_ID"),
        api_token=required("JUPYTERHUB_API_TOKEN"),
        redirect_uri=environment.get("JUPYTERHUB_OAUTH_CALLBACK_URL") or f"{prefix}oauth_callback",
        # Elsewhere the hub names the service, such as a Kubernetes one, and not an interface.
        host=listen.hostname if listen.hostname in LOOPBACK else "",
        port=listen.port or 80,
        database=database,
        has_client_documents=has_client_documents,
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"{url!r} is not an address such as https://hub.example.org")
    return f"{parts.scheme}://{parts.netloc}"


class Addresses:
    """The public addresses of a service."""

    def __init__(self, base: str) -> None:
        """Take the address of the service."""
        self.issuer = base.rstrip("/")

    @property
    def resource(self) -> str:
        """The address for MCP clients."""
        return f"{self.issuer}/mcp"

    def resource_of(self, server: str) -> str:
        """Return the address for MCP clients, or that of a named server below it."""
        return f"{self.resource}{_below(server)}"

    def resource_metadata(self, server: str = "") -> str:
        """Return the address of the metadata of the resource, or of a named server below it."""
        return f"{self.issuer}/.well-known/oauth-protected-resource/mcp{_below(server)}"

    def describe_resource(self, server: str = "") -> dict[str, Any]:
        """Return the metadata of the protected resource."""
        return {
            "resource": self.resource_of(server),
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp"],
            "resource_name": "Jupyter notebooks of a hub",
        }

    def describe_issuer(self, *, has_documents: bool) -> dict[str, Any]:
        """Return the metadata of the authorization server."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "scopes_supported": ["mcp"],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": has_documents,
            # OpenID Connect requires these; there are no ID tokens, and so no keys.
            "jwks_uri": f"{self.issuer}/jwks",
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def challenge(self, server: str, error: str = "", description: str = "") -> str:
        """Return the header WWW-Authenticate of a rejected request."""
        parts = {"error": error, "error_description": description}
        details = "".join(f', {name}="{text}"' for name, text in parts.items() if text)
        return f'Bearer resource_metadata="{self.resource_metadata(server)}", scope="mcp"{details}'


def _below(server: str) -> str:
    return f"/{quote(server, safe='')}" if server else ""


@dataclass(frozen=True)
class ServiceState:
    """The parts of the service."""

    settings: HubSettings
    addresses: Addresses
    clients: ClientRegistry
    grants: Grants
    tokens: TokenStore
    hub: HubClient
    documents: ClientDocuments

    async def client(self, id: str) -> OAuthClient:
        """Return the client with an id, or raise AuthorizationError."""
        return await self.documents.find(id) if self._is_document(id) else self.clients.find(id)

    def client_id(self, id: str) -> str:
        """Return the id of a client that has a code or token, or raise AuthorizationError.

        The code or token is bound to it, so that its document need not be fetched.
        """
        return id if self._is_document(id) else self.clients.find(id).id

    def _is_document(self, id: str) -> bool:
        return self.settings.has_client_documents and is_document_address(id)


def open_state(settings: HubSettings) -> ServiceState:
    """Open the database and make the parts."""
    addresses = Addresses(settings.base)
    tokens = TokenStore(settings.database)
    return ServiceState(
        settings,
        addresses,
        ClientRegistry(tokens.key("clients")),
        Grants(addresses.resource),
        tokens,
        HubClient(settings.api_url, settings.client_id, settings.api_token, settings.redirect_uri),
        ClientDocuments(),
    )
