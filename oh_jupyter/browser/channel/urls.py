"""Addresses as they are shown to people and agents."""

from __future__ import annotations

import re

__all__ = ["shortened_url", "shortened_urls"]

MAX_DATA_CHARS = 60
"""Characters of a ``data:`` address that are shown; the rest is counted."""
_DATA_URL = re.compile(
    rf"(?<![\w.+-])(data:[\w!#$&^.+-]*/?[\w!#$&^.+-]*[;,][^\s'\"<>)\]]{{{MAX_DATA_CHARS},}})", re.I
)


def shortened_url(url: str) -> str:
    """Shorten a ``data:`` address; leave all others as they are."""
    if url[:5].lower() != "data:" or len(url) <= MAX_DATA_CHARS:
        return url
    return f"{url[:MAX_DATA_CHARS]}…({len(url)} characters)"


def shortened_urls(text: str) -> str:
    """Shorten all long ``data:`` addresses in a text."""
    return _DATA_URL.sub(lambda found: shortened_url(found[1]), text)
