"""Scoped tokens: what an agent may do over REST and MCP, in which notebook, and until when.

Only a hash of each token is stored, so that nobody can use what they read there. The server looks
up the token of each request, so a revoked one is refused at once.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oh_jupyter.errors import ConfigError, LedgerError
from oh_jupyter.events.actor import SCOPES
from oh_jupyter.state.shared import open_ledger

if TYPE_CHECKING:
    from oh_jupyter.state.ledger import Ledger

_logger = logging.getLogger(__name__)

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


class ScopedTokens:
    """The tokens of a user, in a ledger that only this user can read."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        """Use a ledger, by default that of the user's state."""
        self._chosen = ledger

    @property
    def ledger(self) -> Ledger:
        """The ledger with the tokens."""
        return open_ledger() if self._chosen is None else self._chosen

    def create(
        self,
        scopes: Iterable[str],
        *,
        notebook: str = "",
        expires_seconds: float | None = None,
        label: str = "",
    ) -> tuple[ScopedToken, str]:
        """Store a new token; return its record, and the token, which is stored nowhere.

        Raises ConfigError if no scope is named or one is unknown, and LedgerError if the ledger
        cannot be written.
        """
        chosen = tuple(scope for scope in SCOPES if scope in {*scopes})
        if unknown := sorted({*scopes} - SCOPES.keys()):
            raise ConfigError(f"there is no scope {unknown[0]!r}. Scopes: {', '.join(SCOPES)}")
        if not chosen:
            raise ConfigError(f"name what the token allows: {', '.join(SCOPES)}")
        secret, now = PREFIX + secrets.token_urlsafe(32), time.time()
        token = ScopedToken(
            secrets.token_hex(4),
            chosen,
            notebook.strip("/"),
            None if expires_seconds is None else now + expires_seconds,
            label.encode(errors="replace").decode(),
            _hash(secret),
        )
        row = (
            *(token.hash, token.id, " ".join(chosen), _encoded(token.notebook)),
            *(token.expires, token.label),
        )
        with self.ledger.transaction() as connection:
            connection.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
            connection.execute(
                "INSERT INTO tokens(hash, id, scopes, notebook, expires, label) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        return token, secret

    def revoke(self, id: str) -> None:
        """Remove a token; raise ConfigError if there is none with this id."""
        if id in (known := [token.id for token in self.list()]):
            # A power loss must not make it valid again.
            with self.ledger.transaction(is_flushed=True) as connection:
                connection.execute("DELETE FROM tokens WHERE id = ?", (id,))
        else:
            raise ConfigError(f"there is no token {id!r}. Tokens: {', '.join(known) or 'none'}")

    def list(self) -> list[ScopedToken]:
        """Return the tokens that have not expired, oldest first."""
        tokens = map(_token, self.ledger.rows(f"{_SELECT} ORDER BY number"))
        return [token for token in tokens if not token.is_expired]

    def find(self, secret: str) -> ScopedToken | None:
        """Return the record of a token that is valid, or None; an unusable ledger admits nobody."""
        try:
            row = self.ledger.row(f"{_SELECT} WHERE hash = ?", (_hash(secret),))
        except LedgerError as error:
            _logger.warning("Requests with scoped tokens are refused: %s", error)
            return None
        token = None if row is None else _token(row)
        return None if token is None or token.is_expired else token


_SELECT = "SELECT id, scopes, notebook, expires, label, hash FROM tokens"


def _token(row: tuple[Any, ...]) -> ScopedToken:
    id, scopes, notebook, *others = row
    return ScopedToken(id, tuple(scopes.split()), notebook.decode(errors="surrogatepass"), *others)


def _encoded(path: str) -> bytes:
    return path.encode(errors="surrogatepass")  # names of files need not be UTF-8


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
