"""Documents that tell MCP clients how to authorize (RFC 9728, RFC 8414).

A service owns only the addresses below its own prefix. RFC 8414 would put the authorization
server's metadata at the root of the hub; clients of MCP also look below the issuer, by the rule of
OpenID Connect. So the metadata is there, with the fields that OpenID Connect requires.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote


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
