"""Authorization requests that a person decides about, their codes, and tokens of MCP clients.

Requests and codes are in memory and live for minutes: after a restart the client starts again. Each
request belongs to the browser that opened it, by a nonce in its cookie. Each token stands for a
user's token of the hub.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from cryptography.fernet import Fernet

from oh_jupyter.errors import AuthorizationError, ConfigError
from oh_jupyter.hub.clients import OAuthClient

ACCESS_SECONDS = 3600.0

RETRY_SECONDS = 30.0
"""Time in which a client may use a refresh token again, because it lost the response."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY, kind TEXT NOT NULL, family TEXT NOT NULL, client TEXT NOT NULL,
    user TEXT NOT NULL, resource TEXT NOT NULL, expires REAL NOT NULL, ends REAL NOT NULL,
    spent REAL, sealed BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS families ON tokens (family);
"""


@dataclass(frozen=True)
class ClientGrant:
    """The record of a token: a user's permission for a client.

    Attributes:
        family: Name of the tokens of one authorization, which end together.
        client: Id of the OAuth client.
        user: The hub's user.
        resource: The address for which it is valid, and those below.
        hub: The hub's token, and when it ends.
    """

    family: str
    client: str
    user: str
    resource: str
    hub: HubGrant


class TokenStore:
    """The tokens in an SQLite database that only its owner can read."""

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.time) -> None:
        """Open or create the database; raise ConfigError if that is impossible."""
        self._clock = clock
        try:
            if str(path) != ":memory:":
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"the database {path} cannot be used: {error}") from error

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def key(self, name: str) -> bytes:
        """Return the secret key of a name, which is made for the first call."""
        self._database.execute(
            "INSERT OR IGNORE INTO keys VALUES (?, ?)", (name, secrets.token_bytes(32))
        )
        query = "SELECT value FROM keys WHERE name = ?"
        return bytes(self._database.execute(query, (name,)).fetchone()[0])

    def issue(self, client: str, resource: str, hub: HubGrant) -> tuple[str, dict[str, Any]]:
        """Make the first tokens of an authorization; return their family and the response."""
        family = secrets.token_hex(8)
        return family, self._issue(ClientGrant(family, client, hub.user, resource, hub))

    def _issue(self, grant: ClientGrant) -> dict[str, Any]:
        now = self._clock()
        self._database.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        access_ends = min(now + ACCESS_SECONDS, grant.hub.expires)
        return {
            "access_token": self._add("access", grant, access_ends),
            "token_type": "Bearer",
            "expires_in": int(access_ends - now),
            "refresh_token": self._add("refresh", grant, grant.hub.expires),
            "scope": "mcp",
        }

    def _add(self, kind: str, grant: ClientGrant, expires: float) -> str:
        token = f"ohm_{secrets.token_urlsafe(32)}"
        sealed = _box(token).encrypt(grant.hub.hub_token.encode())
        self._database.execute(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
            (
                *(_hash(token), kind, grant.family, grant.client, grant.user, grant.resource),
                *(expires, grant.hub.expires, sealed),
            ),
        )
        return token

    def find(self, token: str) -> ClientGrant | None:
        """Return the record of a valid access token, or None."""
        grant, _ = self._find("access", token)
        return grant

    def _find(self, kind: str, token: str) -> tuple[ClientGrant | None, float | None]:
        """Return the record of a valid token, and when it was spent."""
        row = self._database.execute(
            "SELECT family, client, user, resource, expires, ends, spent, sealed FROM tokens "
            "WHERE hash = ? AND kind = ?",
            (_hash(token), kind),
        ).fetchone()
        if row is None or row[4] <= self._clock():
            return None, None
        family, client, user, resource, _, ends, spent, sealed = row
        hub_token = _box(token).decrypt(sealed).decode()
        grant = ClientGrant(family, client, user, resource, HubGrant(user, hub_token, ends))
        return grant, spent

    def refresh(self, client: str, token: str, resource: str | None) -> dict[str, Any]:
        """Replace a refresh token; return the response, or raise AuthorizationError.

        A token that is used again after its replacement was stolen, so its whole family ends.
        """
        grant, spent = self._find("refresh", token)
        if grant is None or grant.client != client:
            raise AuthorizationError("invalid_grant", "The refresh token is unknown or has ended.")
        if spent is not None and self._clock() - spent > RETRY_SECONDS:
            self.revoke_family(grant.family)
            raise AuthorizationError("invalid_grant", "The refresh token was used before.")
        if resource is not None and resource != grant.resource:
            raise AuthorizationError("invalid_target", f"The token is for {grant.resource} only.")
        if spent is None:
            self._database.execute(
                "UPDATE tokens SET spent = ? WHERE hash = ?", (self._clock(), _hash(token))
            )
        return self._issue(grant)

    def revoke(self, client: str, token: str) -> None:
        """End a client's token with its family; ignore an unknown one."""
        for kind in ("access", "refresh"):
            grant, _ = self._find(kind, token)
            if grant is not None and grant.client == client:
                self.revoke_family(grant.family)

    def revoke_family(self, family: str) -> None:
        """End the tokens of one authorization."""
        self._database.execute("DELETE FROM tokens WHERE family = ?", (family,))


def _hash(token: str) -> str:
    return hashlib.sha256(b"hash\0" + token.encode()).hexdigest()


def _box(token: str) -> Fernet:
    """Return the encryption with the key of a token, whose 256 random bits need no stretching."""
    key = hashlib.sha256(b"seal\0" + token.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


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
