"""Signatures by the Standard Webhooks scheme, so that a receiver knows who reports."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import IO

from oh_jupyter.errors import StoreConfigError

__all__ = ["Signer"]

_CHUNK_BYTES = 1 << 20


class Signer:
    """Signs requests with one secret, or with several while they are being changed.

    A secret is ``whsec_`` and base64, as the scheme has it; base64 alone is fine, too.
    """

    def __init__(self, secrets: str | Sequence[str]) -> None:
        given = secrets.split() if isinstance(secrets, str) else list(secrets)
        try:
            self._keys = [
                base64.b64decode(secret.removeprefix("whsec_"), validate=True) for secret in given
            ]
        except (binascii.Error, ValueError, AttributeError):
            self._keys = []
        if not self._keys or not all(self._keys):
            # Without the value, and without the error that quotes it.
            raise StoreConfigError(
                "A secret of the webhook is not 'whsec_' and base64; "
                "make one with: echo whsec_$(openssl rand -base64 24)"
            ) from None

    def sign(self, id: str, timestamp: str, body: bytes | IO[bytes]) -> str:
        """Value of ``webhook-signature``, one per secret; a file is read, and rewound."""
        hashes = [
            hmac.new(key, f"{id}.{timestamp}.".encode(), hashlib.sha256) for key in self._keys
        ]
        if isinstance(body, bytes):
            for hashing in hashes:
                hashing.update(body)
        else:
            while piece := body.read(_CHUNK_BYTES):
                for hashing in hashes:
                    hashing.update(piece)
            body.seek(0)
        return " ".join(f"v1,{base64.b64encode(h.digest()).decode()}" for h in hashes)
