"""State of the running service, which its handlers share."""

from __future__ import annotations

from dataclasses import dataclass

from oh_jupyter.hub.clients import ClientRegistry
from oh_jupyter.hub.discovery import Addresses
from oh_jupyter.hub.grants import Grants
from oh_jupyter.hub.hub_client import HubClient
from oh_jupyter.hub.settings import HubSettings
from oh_jupyter.hub.tokens import TokenStore


@dataclass(frozen=True)
class ServiceState:
    """The parts of the service."""

    settings: HubSettings
    addresses: Addresses
    clients: ClientRegistry
    grants: Grants
    tokens: TokenStore
    hub: HubClient


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
    )
