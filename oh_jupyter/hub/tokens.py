"""Tokens of MCP clients, each of which stands for a user's token of the hub.

The database contains hashes of our tokens, and the hub's tokens encrypted with keys that are made
from ours. So who reads the database can use neither.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from oh_jupyter.errors import AuthorizationError, ConfigError
from oh_jupyter.hub.grants import HubGrant

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
