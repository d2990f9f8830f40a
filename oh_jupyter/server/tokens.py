"""Scoped tokens: what an agent may do over REST and MCP, in which notebook, and until when.

Only a hash of each token is stored, so that nobody can use what they read there. The server reads
the file again when it changes, so a revoked token is refused at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.config import state_home
from oh_jupyter.errors import ConfigError
from oh_jupyter.events.scopes import SCOPES
from oh_jupyter.locks import file_lock

PREFIX = "ohj_"
"""Start of every scoped token."""


@dataclass(frozen=True)
class ScopedToken:
    """Record of a token, without the token itself.

    Attributes:
        id: Name for listing and revoking.
        scopes: What it allows, see ``SCOPES``.
        notebook: Path of the only notebook that it allows, below the server's root, or "".
        expires: When it ends, in seconds since the epoch, or None.
        label: What its owner calls it, or "".
        hash: SHA-256 of the token.
    """

    id: str
    scopes: tuple[str, ...]
    notebook: str
    expires: float | None
    label: str
    hash: str

    @property
    def is_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and time.time() >= self.expires

    def __str__(self) -> str:
        """Describe it in a line."""
        where = f" in {self.notebook}" if self.notebook else ""
        ends = ""
        if self.expires is not None:
            ends = ", until " + time.strftime("%Y-%m-%d %H:%M", time.localtime(self.expires))
        label = f" ({self.label})" if self.label else ""
        return f"{self.id}  {', '.join(self.scopes)}{where}{ends}{label}"


def confines(scopes: Iterable[str] | None) -> bool:
    """Return whether scopes, None for all, limit an agent to the workspace and the web.

    Otherwise it could read the server's own token, or write a file that runs later.
    """
    return scopes is not None and "execute" not in scopes


class TokenFile:
    """The tokens of a user, in a file that only this user can read."""

    def __init__(self, path: Path | None = None) -> None:
        """Use a file, by default that of the user's state."""
        self.path = path or state_home() / "tokens.json"
        self._version: tuple[int, int] | None = None
        self._tokens: dict[str, ScopedToken] = {}

    def create(
        self,
        scopes: Iterable[str],
        *,
        notebook: str = "",
        expires_seconds: float | None = None,
        label: str = "",
    ) -> tuple[ScopedToken, str]:
        """Store a new token; return its record, and the token, which is stored nowhere.

        Raises ConfigError if no scope is named, a scope is unknown, or the file cannot be written.
        """
        chosen = tuple(scope for scope in SCOPES if scope in {*scopes})
        if unknown := sorted({*scopes} - SCOPES.keys()):
            raise ConfigError(f"there is no scope {unknown[0]!r}. Scopes: {', '.join(SCOPES)}")
        if not chosen:
            raise ConfigError(f"name what the token allows: {', '.join(SCOPES)}")
        secret = PREFIX + secrets.token_urlsafe(32)
        token = ScopedToken(
            secrets.token_hex(4),
            chosen,
            notebook.strip("/"),
            None if expires_seconds is None else time.time() + expires_seconds,
            label,
            _hash(secret),
        )
        self._change(lambda tokens: [*tokens, token])
        return token, secret

    def revoke(self, id: str) -> None:
        """Remove a token; raise ConfigError if there is none with this id."""
        if id not in (known := [token.id for token in self.list()]):
            raise ConfigError(f"there is no token {id!r}. Tokens: {', '.join(known) or 'none'}")
        self._change(lambda tokens: [token for token in tokens if token.id != id])

    def list(self) -> list[ScopedToken]:
        """Return the tokens that have not expired, oldest first."""
        self._read()
        return [token for token in self._tokens.values() if not token.is_expired]

    def find(self, secret: str) -> ScopedToken | None:
        """Return the record of a token that is valid, or None."""
        self._read()
        token = self._tokens.get(_hash(secret))
        return None if token is None or token.is_expired else token

    def _change(self, change: Any) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with file_lock(f"{self.path}.lock"):
                fresh = self.path.with_suffix(".new")
                content = json.dumps([asdict(token) for token in change(self.list())], indent=1)
                descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(descriptor, "w", encoding="utf-8") as file:
                    file.write(content)
                fresh.replace(self.path)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error}") from error

    def _read(self) -> None:
        """Read the file if it has changed; an unreadable one admits nobody."""
        try:
            status = self.path.stat()
            version = (status.st_mtime_ns, status.st_ino)
            if version != self._version:
                listed = json.loads(self.path.read_text("utf-8"))
                tokens = [
                    ScopedToken(**{**each, "scopes": tuple(each["scopes"])}) for each in listed
                ]
                self._tokens = {token.hash: token for token in tokens}
                self._version = version
        except (OSError, ValueError, TypeError, KeyError):
            self._tokens, self._version = {}, None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
