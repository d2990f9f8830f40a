"""Identity and permissions of requests with a scoped token."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.authorizer import Authorizer
from jupyter_server.auth.identity import IdentityProvider, User

from oh_jupyter.server.tokens import ScopedToken

_SCOPE_OF_PERMISSION = {
    ("read", "oh_jupyter:actions"): "read",
    ("read", "oh_jupyter:events"): "read",
    ("read", "oh_jupyter:store"): "read",
    ("read", "sessions"): "read",
    ("read", "contents"): "read",
    ("write", "oh_jupyter:store"): "edit",
    ("write", "contents"): "edit",
    ("execute", "oh_jupyter:actions"): "execute",
    ("execute", "kernels"): "execute",
}

_CHECKED_BY_CONTENT = frozenset(
    (
        *("executeAction", "fetchAnswer", "cancelRequest"),
        *("mcpStream", "mcpMessage", "mcpEnd", "mcpSse", "mcpSseMessage"),
    )
)
"""Endpoints that admit every token: the Action or the tool that is called decides."""


class TokenIdentityProvider(IdentityProvider):  # type: ignore[misc]
    """Identity of requests with a scoped token."""

    token_record: ScopedToken

    def get_user(self, handler: Any) -> User:
        """Return a user with the token's name."""
        token = self.token_record
        name = f"{token.label or 'token'} ({token.id})"
        return User(username=name, name=name, display_name=name)

    def is_token_authenticated(self, handler: Any) -> bool:
        """Skip the XSRF check: no other site can send the token."""
        return True


def identity_of(token: ScopedToken) -> TokenIdentityProvider:
    """Return the identity provider of requests with a token."""
    provider = TokenIdentityProvider()
    provider.token_record = token
    return provider


class ScopeAuthorizer(Authorizer):  # type: ignore[misc]
    """Allows what the scopes of a token include."""

    scopes: tuple[str, ...] = ()

    def is_authorized(self, handler: Any, user: User, action: str, resource: str) -> bool:
        """Return whether a scope covers an action on a resource at the request's endpoint."""
        permission = (action, resource)
        endpoint = handler.routes[handler.request.method.lower()].name
        if permission == ("execute", "oh_jupyter:actions") and endpoint in _CHECKED_BY_CONTENT:
            return True
        return _SCOPE_OF_PERMISSION.get(permission) in self.scopes


def authorizer_of(token: ScopedToken) -> ScopeAuthorizer:
    """Return the authorizer of requests with a token."""
    authorizer = ScopeAuthorizer()
    authorizer.scopes = token.scopes
    return authorizer


def refusal(token: ScopedToken, reason: str) -> str:
    """Describe why a request with a token was refused, from the reason of the HTTP error."""
    if reason.startswith("The token "):
        return reason
    return f"The token allows {', '.join(token.scopes)}, and not this request"
