"""Masking of secrets in events and texts, in all their encodings."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "<secret_hidden>"
"""Replacement of a secret, the same as in OpenHands."""

# A reader needs these keys to identify an event; they cannot contain secrets.
_STRUCTURE = {"id", "timestamp", "source", "cause", "action", "observation"}


class SecretMasker:
    """Thread-safe masker of secrets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._encodings: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Add secrets; ignore empty ones, which match everywhere."""
        with self._lock:
            added = frozenset(filter(None, secrets)) - self._secrets
            if not added:
                return
            self._secrets |= added
            encodings = {encoding for secret in added for encoding in _encodings(secret)}
            encodings |= self._encodings
            # The longest first: one secret may be a prefix of another.
            longest_first = sorted(encodings, key=lambda value: (-len(value), value))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
            self._encodings = frozenset(encodings)

    @property
    def values(self) -> frozenset[str]:
        """The secrets in all their encodings."""
        return self._encodings

    def masked(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Return a masked copy of an event's wire form; the same object if it has no secrets."""
        if self._pattern is None:
            return wire
        copy = {
            name: value if name in _STRUCTURE else _masked(value, self.masked_text, depth=1)
            for name, value in wire.items()
        }
        return wire if copy == wire else copy

    def masked_text(self, text: str) -> str:
        """Replace the secrets in a text."""
        # In a long text, searching for each one is faster than the pattern with all of them.
        if self._pattern is None or not any(secret in text for secret in self._encodings):
            return text
        return self._pattern.sub(HIDDEN, text)


def _encodings(value: str) -> set[str]:
    """Return the encodings of a value in JSON, in Python calls, in URLs and in HTML."""
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("\\", "\\\\").replace("'", "\\'"),
        quote(value, safe=""),
        quote(value, safe="!'()*"),  # encodeURIComponent
        quote(value, safe="!$&'()*+,/:;=?@[\\]^`{|}"),  # a browser's query
        quote_plus(value, safe="*"),  # a submitted form
        escape(value),
        escape(value, quote=False),
    }


def _masked(value: Any, mask: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        # Names at depth 1 belong to the protocol; a client may choose the deeper ones.
        return {
            _masked(name, mask, depth) if depth > 1 else name: _masked(item, mask, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(item, mask, depth + 1) for item in value]
    return value
