"""OAuth clients, and the addresses that they may be redirected to.

Registration needs no storage: a client's id contains its name and its redirect addresses, with a
signature, or is the address of a document about the client. So nobody can fill a disk with
registrations, and none of them is ever lost.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import re
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from oh_jupyter.errors import AuthorizationError

MAX_REDIRECTS = 5
MAX_REDIRECT_CHARS = 500
MAX_NAME_CHARS = 80

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

FORBIDDEN_SCHEMES = frozenset(
    (
        *("about", "blob", "chrome", "data", "file", "filesystem", "ftp", "javascript", "mailto"),
        *("view-source", "vbscript", "ws", "wss"),
    )
)
"""Schemes that a browser handles itself, so that no program of the person's gets the code."""


@dataclass(frozen=True)
class OAuthClient:
    """A public client: it has no secret, and proves itself by PKCE and its redirect address."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]

    def allows(self, redirect_uri: str) -> bool:
        """Return whether an address is registered; for loopback, the port does not matter.

        Native programs listen on whatever port is free (RFC 8252, section 7.3).
        """
        return any(
            redirect_uri == each
            or (is_loopback(each) and _any_port(redirect_uri) == _any_port(each))
            for each in self.redirect_uris
        )


def _any_port(uri: str) -> str | None:
    """Return a loopback address without its port, or None for another address."""
    parts = _split(uri)
    if parts is None or parts.scheme != "http" or not is_usable_redirect(uri):
        return None
    return f"{parts.hostname}{parts.path}?{parts.query}"


def _split(uri: str) -> Any:
    """Parse an address, or return None if it is malformed."""
    # Browsers read these characters differently from urlsplit.
    if not uri.isascii() or not uri.isprintable() or re.search(r'[\s\\"<>^`{|}]', uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts


def is_loopback(uri: str) -> bool:
    """Return whether an address is that of a program on the person's own machine."""
    return _any_port(uri) is not None


def is_usable_redirect(uri: str) -> bool:
    """Return whether a client may register an address: HTTPS, loopback, or a program's scheme."""
    parts = _split(uri)
    if parts is None or len(uri) > MAX_REDIRECT_CHARS or "#" in uri or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK
    return bool(parts.scheme) and parts.scheme not in FORBIDDEN_SCHEMES


def checked_redirects(uris: Any) -> list[str]:
    """Return the redirect addresses of a client's metadata, or raise AuthorizationError."""
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECTS:
        raise AuthorizationError(
            "invalid_redirect_uri", f"redirect_uris must list 1 to {MAX_REDIRECTS} addresses."
        )
    for uri in uris:
        if not isinstance(uri, str) or not is_usable_redirect(uri):
            raise AuthorizationError(
                "invalid_redirect_uri",
                f"{uri!r} is no usable redirect address: use https, http on localhost, or a "
                "scheme of your own program, without a fragment.",
            )
    return uris


class ClientRegistry:
    """Registration and lookup of clients with a key (RFC 7591)."""

    def __init__(self, key: bytes) -> None:
        """Sign the ids with a secret key."""
        self._key = key

    def register(self, metadata: Any) -> tuple[OAuthClient, dict[str, Any]]:
        """Return a new client and the response to it, or raise AuthorizationError."""
        if not isinstance(metadata, dict):
            raise AuthorizationError("invalid_client_metadata", "The body must be a JSON object.")
        uris = checked_redirects(metadata.get("redirect_uris"))
        for field, required in (
            ("grant_types", "authorization_code"),
            ("response_types", "code"),
        ):
            if required not in (metadata.get(field) or [required]):
                raise AuthorizationError(
                    "invalid_client_metadata", f"{field} must include {required}."
                )
        client = self._make(str(metadata.get("client_name") or "")[:MAX_NAME_CHARS], uris)
        return client, {
            "client_id": client.id,
            **({"client_name": client.name} if client.name else {}),
            "redirect_uris": list(client.redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            # A secret that anyone gets on request would prove nothing.
            "token_endpoint_auth_method": "none",
        }

    def _make(self, name: str, uris: list[str]) -> OAuthClient:
        content = json.dumps([name, uris], separators=(",", ":"), ensure_ascii=False).encode()
        id = f"{_encode(content)}.{_encode(self._signature(content))}"
        return OAuthClient(id, name, tuple(uris))

    def find(self, id: str) -> OAuthClient:
        """Return the client with an id, or raise AuthorizationError."""
        encoded, _, signature = id.partition(".")
        try:
            content = _decode(encoded)
            if hmac.compare_digest(_decode(signature), self._signature(content)):
                name, uris = json.loads(content)
                return OAuthClient(id, name, tuple(uris))
        except (ValueError, binascii.Error):
            pass
        raise AuthorizationError(
            "invalid_client",
            "This client is not registered here. Register it again; most clients do after their "
            "stored authorization for this address is removed.",
            status=401,
        )

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, b"client\0" + content, hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:  # several spellings of one id would be several clients
        raise ValueError(text)
    return data


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
