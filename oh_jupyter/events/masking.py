"""Secrets do not go into the log: their values are replaced wherever they appear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

__all__ = ["HIDDEN", "Mask"]

HIDDEN = "<secret_hidden>"
"""What stands where a secret was; the same text as OpenHands'."""

# Without these a reader would not know what an event is. No secret can be in them.
_STRUCTURE = {"id", "timestamp", "source", "cause", "action", "observation"}


class Mask:
    """The secrets that are known so far. Safe to use from several threads."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        """Learn secrets. Empty ones are ignored, since they are everywhere.

        Args:
            values: The values that must not appear.
        """
        known = set(self._values)
        for value in values:
            if value:
                known.update(_spellings(value))
        self._values = frozenset(known)
        # The longest first: a secret may be the beginning of another one.
        longest_first = sorted(known, key=lambda value: (-len(value), value))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if known else None

    @property
    def values(self) -> frozenset[str]:
        """The secrets, and how JSON writes them."""
        return self._values

    def masked(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Copy an event without the secrets.

        Args:
            wire: An event in its wire form; it is not changed.

        Returns:
            A copy, or the event itself if it contains none.
        """
        pattern = self._pattern
        if pattern is None:
            return wire
        copy = {
            name: value if name in _STRUCTURE else _masked(value, pattern, depth=1)
            for name, value in wire.items()
        }
        return wire if copy == wire else copy


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
