"""Which origins a browser may reach.

Two fences: requests are checked by scheme, host and port before they are sent, and Chromium
cannot find the addresses of hosts that are out of bounds, which also stops what is never
asked about: redirects, workers and sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

__all__ = ["OriginFilter"]

INNER = frozenset({"about", "blob", "chrome-error", "chrome-extension", "data", "javascript"})
"""Schemes that reach nothing."""
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
WEB = {"ws": "http", "wss": "https"}


@dataclass(frozen=True)
class _Pattern:
    """One entry of a list; empty parts mean anything."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> _Pattern:
        scheme, separator, rest = text.strip().lower().partition("://")
        if not separator:
            scheme, rest = "", scheme
        try:
            parts = urlsplit(f"//{rest}")
            port = parts.port
        except ValueError as error:
            raise BrowserError(f"{text!r} is not an origin: {error}.") from None
        if parts.path not in ("", "/") or not (parts.hostname or scheme == "file"):
            raise BrowserError(
                f"{text!r} is not an origin. Examples: https://example.org, *.example.org, "
                "http://localhost:8888, file://"
            )
        if port is None and scheme in PORTS:
            port = PORTS[scheme]
        return cls(scheme, parts.hostname or "", port)

    def matches(self, scheme: str, host: str, port: int | None) -> bool:
        return (
            self.scheme in ("", scheme)
            and (not self.host or fnmatchcase(host, self.host))
            and (self.port is None or self.port == port)
        )


class OriginFilter:
    """An allow-list and a block-list; what is on both is blocked."""

    def __init__(self, allowed: Iterable[str], blocked: Iterable[str]) -> None:
        """Read the lists.

        Args:
            allowed: Origins such as ``https://example.org``; ``*`` stands for any letters, and
                scheme or port may be left out. Empty to allow all.
            blocked: Origins in the same form.

        Raises:
            BrowserError: An entry is no origin.
        """
        self._allowed = [_Pattern.parse(text) for text in allowed]
        self._blocked = [_Pattern.parse(text) for text in blocked]

    def allows(self, url: str) -> bool:
        """Tell whether an address may be reached.

        Args:
            url: The address.

        Returns:
            Whether it may.
        """
        parts = urlsplit(url)
        if parts.scheme in INNER:
            return True
        try:
            port = parts.port or PORTS.get(parts.scheme)
        except ValueError:
            return False
        origin = WEB.get(parts.scheme, parts.scheme), (parts.hostname or "").lower(), port
        if any(pattern.matches(*origin) for pattern in self._blocked):
            return False
        return not self._allowed or any(pattern.matches(*origin) for pattern in self._allowed)

    def arguments(self) -> list[str]:
        """Say it to Chromium, as far as it can be said by hosts.

        Returns:
            Arguments of its command line.
        """
        rules = []
        for pattern in self._blocked:
            if pattern.host:
                port = "" if pattern.port is None else f":{pattern.port}"
                rules.append(f"MAP {pattern.host}{port} ~NOTFOUND")
        hosts = {pattern.host for pattern in self._allowed if pattern.host}
        if self._allowed and "*" not in hosts:
            rules.append("MAP * ~NOTFOUND")
            rules += [f"EXCLUDE {host}" for host in sorted(hosts)]
        return [f"--host-resolver-rules={', '.join(rules)}"] if rules else []

    async def install(self, context: BrowserContext) -> None:
        """Hold back the requests of a context that may not be sent.

        Args:
            context: The context.
        """
        if self._allowed or self._blocked:
            await context.route(lambda url: not self.allows(url), _refuse)


async def _refuse(route: Route) -> None:
    await route.abort("blockedbyclient")
