"""Secrets are replaced wherever they appear in events and texts, however they are spelled."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "<secret_hidden>"
"""What stands where a secret was; the same text as OpenHands'."""

# Without these a reader would not know what an event is. No secret can be in them.
_STRUCTURE = {"id", "timestamp", "source", "cause", "action", "observation"}


class SecretMasker:
    """Replaces the secrets that it knows so far. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._spellings: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Learn secrets; empty ones are ignored, since they are everywhere."""
        with self._lock:
            added = frozenset(filter(None, secrets)) - self._secrets
            if not added:
                return
            self._secrets |= added
            self._spellings |= {spelling for secret in added for spelling in _spellings(secret)}
            # The longest first: a secret may be the beginning of another one.
            longest_first = sorted(self._spellings, key=lambda value: (-len(value), value))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    @property
    def values(self) -> frozenset[str]:
        """The secrets in all their spellings."""
        return self._spellings

    def masked(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Copy an event in its wire form without the secrets; itself if it contains none."""
        pattern = self._pattern
        if pattern is None:
            return wire
        copy = {
            name: value if name in _STRUCTURE else _masked(value, pattern, depth=1)
            for name, value in wire.items()
        }
        return wire if copy == wire else copy

    def masked_text(self, text: str) -> str:
        """Replace the secrets in a text."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def _spellings(value: str) -> set[str]:
    """Say how else a value is written in JSON, in calls, in addresses and in HTML."""
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("\\", "\\\\").replace("'", "\\'"),
        quote(value, safe=""),
        quote(value, safe="!'()*"),  # encodeURIComponent
        quote(value, safe="!$&'()*+,/:;=?@[\\]^`{|}"),  # what a browser leaves in a query
        quote_plus(value, safe="*"),  # a form that is sent
        escape(value),
        escape(value, quote=False),
    }


def _masked(value: Any, pattern: re.Pattern[str], depth: int) -> Any:
    if isinstance(value, str):
        # str(): an enum of texts is one of the protocol's own words.
        return pattern.sub(HIDDEN, value) if pattern.search(value) else value
    if isinstance(value, dict):
        # Names at depth 1 are those of the protocol; below, a client chose them.
        return {
            _masked(name, pattern, depth) if depth > 1 else name: _masked(item, pattern, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(item, pattern, depth + 1) for item in value]
    return value
