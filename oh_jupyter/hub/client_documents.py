"""Clients whose id is the address of a document about them (client-id metadata documents).

The service fetches addresses that strangers name. So it connects only to public addresses, and to
the very ones that it has checked; it follows no redirects, and reads a few kilobytes for a few
seconds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from oh_jupyter.errors import AuthorizationError
from oh_jupyter.hub.clients import (
    MAX_NAME_CHARS,
    OAuthClient,
    checked_redirects,
    is_usable_redirect,
)

MAX_DOCUMENT_BYTES = 10_000
TIMEOUT_SECONDS = 10.0
CACHE_SECONDS = 600.0
MAX_CACHED = 1000


def is_document_address(id: str) -> bool:
    """Return whether a client's id is the address of a document: HTTPS, with a plain path."""
    if not id.startswith("https://") or not is_usable_redirect(id):
        return False
    segments = urlsplit(id).path.split("/")
    return len(id.split("/", 3)) == 4 and any(segments) and not {".", ".."} & {*segments}


def _is_public(address: str) -> bool:
    # An address of IPv6 may contain one of IPv4.
    parsed = ipaddress.ip_address(address)
    inner = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return parsed.is_global and not parsed.is_multicast and (inner is None or inner.is_global)


class ClientDocuments:
    """Documents of clients, each of which is fetched once in ten minutes."""

    def __init__(
        self,
        *,
        is_allowed: Callable[[str], bool] = _is_public,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """Fetch documents from addresses that are allowed, with certificates that are trusted."""
        self._is_allowed = is_allowed
        self._trust = trust
        self._cached: OrderedDict[str, tuple[float, OAuthClient]] = OrderedDict()

    async def find(self, id: str) -> OAuthClient:
        """Return the client that a document describes, or raise AuthorizationError."""
        expires, client = self._cached.get(id, (0.0, None))
        if client is None or time.monotonic() >= expires:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    client = _parse(id, await self._fetch(id))
            except (TimeoutError, OSError, ValueError, httpx.HTTPError) as error:
                raise _invalid(id, f"cannot be fetched: {error!r}") from error
            self._cached[id] = (time.monotonic() + CACHE_SECONDS, client)
            while len(self._cached) > MAX_CACHED:
                self._cached.popitem(last=False)
        return client

    async def _fetch(self, id: str) -> bytes:
        parts = urlsplit(id)
        host, port = parts.hostname or "", parts.port or 443
        resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in resolved]
        if not addresses or not all(map(self._is_allowed, addresses)):
            raise _invalid(id, "is not on a public address")
        async with (
            httpx.AsyncClient(
                trust_env=False, verify=True if self._trust is None else self._trust
            ) as client,
            client.stream(
                "GET",
                _at(parts, addresses[0], port),
                headers={"Host": parts.netloc, "Accept": "application/json"},
                extensions={"sni_hostname": host},
            ) as response,
        ):
            if response.status_code != 200:
                raise _invalid(id, f"answers {response.status_code}")
            content = b""
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > MAX_DOCUMENT_BYTES:
                    raise _invalid(id, f"has more than {MAX_DOCUMENT_BYTES} bytes")
            return content


def _at(parts: SplitResult, address: str, port: int) -> str:
    """Return the address of a document at the checked address, so that no other is resolved."""
    host = f"[{address}]" if ":" in address else address
    return parts._replace(netloc=f"{host}:{port}").geturl()


def _parse(id: str, content: bytes) -> OAuthClient:
    document: Any = json.loads(content)
    if not isinstance(document, dict) or document.get("client_id") != id:
        raise _invalid(id, "does not name itself as client_id")
    if document.get("token_endpoint_auth_method", "none") != "none":
        raise _invalid(id, "asks for authentication by a key or secret; only none is supported")
    uris = checked_redirects(document.get("redirect_uris"))
    return OAuthClient(id, str(document.get("client_name") or "")[:MAX_NAME_CHARS], tuple(uris))


def _invalid(id: str, reason: str) -> AuthorizationError:
    return AuthorizationError("invalid_client", f"The client's document {id} {reason}.", status=401)
