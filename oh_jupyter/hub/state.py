"""State of the running service, which its handlers share."""

from __future__ import annotations

from dataclasses import dataclass

from oh_jupyter.hub.client_documents import ClientDocuments, is_document_address
from oh_jupyter.hub.clients import ClientRegistry, OAuthClient
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
