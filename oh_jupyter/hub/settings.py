"""Settings of the service, from the variables that a hub sets for its services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from oh_jupyter.errors import ConfigError
from oh_jupyter.hub.clients import LOOPBACK


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
