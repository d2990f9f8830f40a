"""Authorization requests that a person decides about, and the codes that they lead to.

Both are in memory and live for minutes: after a restart the client starts again. Each request
belongs to the browser that opened it, by a nonce in its cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from oh_jupyter.errors import AuthorizationError
from oh_jupyter.hub.clients import OAuthClient

REQUEST_SECONDS = 600.0
"""Time for a person to log in and to decide."""

CODE_SECONDS = 60.0

MAX_PENDING = 2000
"""Limit of the requests, and of the codes; the oldest ones make room."""

T = TypeVar("T")


@dataclass(frozen=True)
class HubGrant:
    """A hub's token for a user, until a time in seconds since the epoch."""

    user: str
    hub_token: str
    expires: float


@dataclass(frozen=True)
class PendingRequest:
    """A valid request of a client, whose user is known after the log-in at the hub."""

    client: OAuthClient
    redirect_uri: str
    state: str | None
    challenge: str
    resource: str
    nonce: str
    grant: HubGrant | None = None


@dataclass
class _Code:
    request: PendingRequest
    grant: HubGrant
    family: str = ""  # of the tokens that it was exchanged for


class _Expiring(Generic[T]):
    """Values by random keys, each for some seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._values: dict[str, tuple[float, T]] = {}

    def add(self, value: T) -> str:
        key = secrets.token_urlsafe(32)
        while len(self._values) >= MAX_PENDING:
            del self._values[next(iter(self._values))]
        self._values[key] = (self._clock() + self._seconds, value)
        return key

    def get(self, key: str) -> T | None:
        expires, value = self._values.get(key, (0.0, None))
        return value if self._clock() < expires else None

    def pop(self, key: str) -> T | None:
        value = self.get(key)
        self._values.pop(key, None)
        return value


class Grants:
    """Pending requests and codes of one service, whose resource is an address and those below."""

    def __init__(self, resource: str, clock: Callable[[], float] = time.time) -> None:
        """Accept requests for tokens of a resource."""
        self._resource = resource
        self._requests: _Expiring[PendingRequest] = _Expiring(REQUEST_SECONDS, clock)
        self._codes: _Expiring[_Code] = _Expiring(CODE_SECONDS, clock)

    def begin(self, client: OAuthClient, params: Mapping[str, str], nonce: str) -> str:
        """Check a client's request and keep it; return its key, or raise AuthorizationError.

        The client and its redirect address must be verified before: errors are sent there.
        """
        if params.get("response_type") != "code":
            raise AuthorizationError("unsupported_response_type", "response_type must be code.")
        challenge = params.get("code_challenge", "")
        if params.get("code_challenge_method") != "S256" or not _is_challenge(challenge):
            raise AuthorizationError(
                "invalid_request", "PKCE is required: code_challenge with the method S256."
            )
        resource = self.resource_of(params)
        return self._requests.add(
            PendingRequest(
                client, params["redirect_uri"], params.get("state"), challenge, resource, nonce
            )
        )

    def resource_of(self, params: Mapping[str, str]) -> str:
        """Return the resource that a request names (RFC 8707), or raise AuthorizationError."""
        resource = params.get("resource", self._resource).rstrip("/")
        if resource != self._resource and not resource.startswith(f"{self._resource}/"):
            raise AuthorizationError(
                "invalid_target", f"{resource} is not served here, only {self._resource} is."
            )
        return resource

    def pending(self, key: str, nonce: str) -> PendingRequest:
        """Return a request of this browser, or raise AuthorizationError."""
        request = self._requests.get(key)
        if request is None or not hmac.compare_digest(request.nonce, nonce):
            raise AuthorizationError(
                "invalid_request",
                "This page has expired, or belongs to another browser. Connect again in your "
                "agent's client.",
            )
        return request

    def logged_in(self, key: str, nonce: str, grant: HubGrant) -> str:
        """Replace a request by one of a known user; return its new key."""
        request = self.pending(key, nonce)
        self._requests.pop(key)
        return self._requests.add(replace(request, grant=grant))

    def decide(self, key: str, nonce: str, *, allow: bool) -> tuple[PendingRequest, str]:
        """End a request by its person's decision; return it with its code, "" if denied."""
        request = self.pending(key, nonce)
        if request.grant is None:
            raise AuthorizationError("invalid_request", "Log in at the hub first.")
        self._requests.pop(key)
        return request, self._codes.add(_Code(request, request.grant)) if allow else ""

    def redeem(self, client_id: str, params: Mapping[str, str]) -> tuple[PendingRequest, HubGrant]:
        """Exchange a code for its request and the hub's token, or raise AuthorizationError.

        A second use raises ReusedCodeError: the code was stolen, by the first or second user.
        """
        code = self._codes.get(params.get("code", ""))
        if code is None or code.request.client.id != client_id:
            raise AuthorizationError("invalid_grant", "The code is unknown or has expired.")
        if code.family:
            family, code.family = code.family, "revoked"
            raise ReusedCodeError(family)
        # One attempt: a wrong verifier ends the code as well.
        code.family = "failed"
        if params.get("redirect_uri") != code.request.redirect_uri:
            raise AuthorizationError("invalid_grant", "redirect_uri differs from before.")
        if not verifies(params.get("code_verifier", ""), code.request.challenge):
            raise AuthorizationError("invalid_grant", "The code_verifier is wrong.")
        if "resource" in params and self.resource_of(params) != code.request.resource:
            raise AuthorizationError(
                "invalid_target", f"The code is for {code.request.resource} only."
            )
        return code.request, code.grant

    def redeemed(self, code: str, family: str) -> None:
        """Note the tokens that a code was exchanged for, which end if it is used again."""
        if (entry := self._codes.get(code)) is not None:
            entry.family = family


class ReusedCodeError(AuthorizationError):
    """A code was used a second time; the tokens of its first use must end."""

    def __init__(self, family: str) -> None:
        """Name the tokens of the first use."""
        super().__init__("invalid_grant", "The code was used before. Connect again.")
        self.family = family


def _is_challenge(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_-]{43}", text) is not None


def verifies(verifier: str, challenge: str) -> bool:
    """Return whether a PKCE verifier belongs to a challenge (RFC 7636, S256)."""
    if not re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier):
        return False
    digest = hashlib.sha256(verifier.encode()).digest()
    expected = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return hmac.compare_digest(expected, challenge)
