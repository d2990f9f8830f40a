"""Addresses of this machine, which no proxy can reach."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_local(url: str) -> bool:
    """Return whether an address is on this machine, which needs no proxy."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
