"""Allowed and blocked origins of a browser, and helpers for addresses.

There are three checks. A route handler checks scheme, host and port of each request before it is
sent. Chromium's network settings block the requests that skip the handler: redirects, workers and
sockets. If a frame still shows a forbidden page, it is emptied; a running browser that was not
started here has only the first and the last check.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oh_jupyter.errors import BrowserError
from oh_jupyter.text import shorten

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request, Route

LOCAL_SCHEMES = frozenset(
    {"about", "blob", "chrome-error", "chrome-extension", "data", "javascript"}
)
"""Schemes that do not reach the network."""
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
HTTP_SCHEMES = {"ws": "http", "wss": "https"}
WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss"}
ORIGIN_EXAMPLES = "Examples: https://example.org, *.example.org, http://localhost:8888, file://"
UNREACHABLE_PROXY_HOST = "blocked.invalid"
"""Proxy that does not exist, so that blocked requests fail."""

_HOST = re.compile(r"[\w.*?-]+|[0-9a-f:.]*:[0-9a-f:.]*")
"""Host name with wildcards, or an IPv6 address."""


@dataclass(frozen=True)
class _Pattern:
    """Entry of a list of origins; empty parts match anything."""

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
            # Addresses such as javascript:alert(1) have a colon, but no port.
            is_port = separator or rest.rpartition(":")[2].isdecimal()
            reason = f": {error}." if is_port else "."
            raise BrowserError(f"{text!r} is not an origin{reason} {ORIGIN_EXAMPLES}") from None
        extra = parts.query or parts.fragment or parts.username is not None
        is_host = _HOST.fullmatch(parts.hostname or "") and not rest.endswith(":")
        is_known = scheme in ("", "file", *DEFAULT_PORTS)
        if (
            extra
            or parts.path not in ("", "/")
            or not is_known
            or not (is_host or (scheme == "file" and not parts.hostname))
        ):
            raise BrowserError(f"{text!r} is not an origin. {ORIGIN_EXAMPLES}")
        if port is None and scheme in DEFAULT_PORTS:
            port = DEFAULT_PORTS[scheme]
        return cls(scheme, parts.hostname or "", port)

    def rules(self) -> list[str]:
        """Return the pattern as rules of Chromium's proxy bypass list."""
        port = "" if self.port is None else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        if not self.scheme:
            return [f"{host}{port}"]
        schemes = {self.scheme, WEBSOCKET_SCHEMES.get(self.scheme, self.scheme)}
        return [f"{scheme}://{host}{port}" for scheme in sorted(schemes)]

    def matches(self, scheme: str, host: str, port: int | None) -> bool:
        return (
            self.scheme in ("", scheme)
            and (not self.host or fnmatchcase(host, self.host))
            and (self.port is None or self.port == port)
        )


class OriginFilter:
    """Lists of allowed and blocked origins; blocking takes precedence."""

    def __init__(self, allowed: Iterable[str], blocked: Iterable[str]) -> None:
        """Parse origins such as ``https://*.example.org``; an empty ``allowed`` allows all."""
        self._allowed = [_Pattern.parse(text) for text in allowed]
        self._blocked = [_Pattern.parse(text) for text in blocked]

    def allows(self, url: str) -> bool:
        """Return whether the browser may reach an address."""
        parts = urlsplit(url)
        if parts.scheme in LOCAL_SCHEMES:
            return True
        try:
            port = parts.port or DEFAULT_PORTS.get(parts.scheme)
        except ValueError:
            return False
        origin = HTTP_SCHEMES.get(parts.scheme, parts.scheme), (parts.hostname or "").lower(), port
        if any(pattern.matches(*origin) for pattern in self._blocked):
            return False
        return not self._allowed or any(pattern.matches(*origin) for pattern in self._allowed)

    def __bool__(self) -> bool:
        """Return whether there are any restrictions."""
        return bool(self._allowed or self._blocked)

    def arguments(self) -> list[str]:
        """Return Chromium's arguments that block requests which skip the route handler.

        Forbidden host names do not resolve, or requests go through a proxy that does not exist.
        """
        if not self:
            return []
        resolver_rules = [f"MAP {UNREACHABLE_PROXY_HOST} ~NOTFOUND"]
        arguments = ["--force-webrtc-ip-handling-policy=disable_non_proxied_udp"]
        for pattern in self._blocked:
            if pattern.host:
                port = "" if pattern.port is None else f":{pattern.port}"
                resolver_rules.append(f"MAP {pattern.host}{port} ~NOTFOUND")
        if self._allowed:
            hosts = {pattern.host for pattern in self._allowed if pattern.host}
            if "*" not in hosts:
                resolver_rules.append("MAP * ~NOTFOUND")
                resolver_rules += [f"EXCLUDE {host}" for host in sorted(hosts)]
            direct = [rule for pattern in self._allowed if pattern.host for rule in pattern.rules()]
            # By default, Chromium uses no proxy for loopback addresses.
            arguments.append(f"--proxy-bypass-list={';'.join(['<-loopback>', *direct])}")
            arguments.append(f"--proxy-server={UNREACHABLE_PROXY_HOST}:1")
        return [*arguments, f"--host-resolver-rules={', '.join(resolver_rules)}"]

    async def install(self, context: BrowserContext) -> None:
        """Block the forbidden requests of a context."""
        if self:
            await context.route(lambda url: not self.allows(url), _block)

    def watch(self, context: BrowserContext, losses: list[str], notices: list[str]) -> None:
        """Empty the frames that show forbidden pages.

        Args:
            context: Context to watch.
            losses: List that receives messages about stopped redirects and emptied pages.
            notices: List that receives messages about other blocked requests.
        """
        if not self:
            return
        running: set[asyncio.Task[None]] = set()

        def failed(request: Request) -> None:
            if self.allows(request.url):
                return
            origin = _origin(request.url)
            message, messages = f"Requests to {origin} are blocked: it is not allowed.", notices
            if request.redirected_from is not None and _is_main(request):
                message = f"A redirect to {origin} was stopped: it is not allowed in this browser."
                messages = losses
            if message not in messages:
                messages.append(message)

        def navigated(frame: Frame) -> None:
            if self.allows(frame.url):
                return
            losses.append(
                f"A page of {_origin(frame.url)} was emptied: it is not allowed in this browser."
            )
            task = asyncio.ensure_future(_empty(frame))
            running.add(task)
            task.add_done_callback(running.discard)

        def opened(page: Page) -> None:
            page.on("framenavigated", navigated)

        for page in context.pages:
            opened(page)
        context.on("page", opened)
        context.on("requestfailed", failed)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _is_main(request: Request) -> bool:
    """Return whether a request is for the page itself."""
    try:
        return request.is_navigation_request() and request.frame.parent_frame is None
    except Exception:  # a new page has no frame yet
        return request.is_navigation_request()


async def _empty(frame: Frame) -> None:
    with contextlib.suppress(Exception):
        await frame.goto("about:blank")


async def _block(route: Route) -> None:
    await route.abort("blockedbyclient")


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.I)
_TYPED_HOST = re.compile(r"(localhost|([\w-]+\.)+[a-z]{2,}|(\d+\.){3}\d+)(:\d+)?([/?#]\S*)?", re.I)
"""Address without a scheme, as people type it."""


def typed_address(url: str, folder: str) -> str:
    """Turn a file path or a host into a URL; return everything else unchanged."""
    if not url or _SCHEME.match(url):
        return url
    if _TYPED_HOST.fullmatch(url) and not os.path.exists(os.path.join(folder, url)):
        return f"http://{url}"
    path = Path(url).expanduser()
    if not path.is_absolute():
        path = Path(folder) / path
    return path.resolve().as_uri() if path.is_absolute() and path.exists() else url


MAX_DATA_CHARS = 60
"""Characters of a ``data:`` URL that are shown."""
_URL_CHAR = r"[^\s'\"<>)\]]"
_DATA_URL = re.compile(
    rf"(?<![\w.+-])(data:[\w!#$&^.+-]*/?[\w!#$&^.+-]*[;,]{_URL_CHAR}{{{MAX_DATA_CHARS},}})", re.I
)


def shortened_url(url: str, *, is_cut: bool = False) -> str:
    """Shorten a ``data:`` URL, which may be the beginning of one; return all others unchanged."""
    if url[:5].lower() != "data:" or len(url) <= MAX_DATA_CHARS:
        return url
    more = " or more" if is_cut else ""
    return shorten(url, MAX_DATA_CHARS, marker=f"…({len(url)} characters{more})")


def shortened_urls(text: str, *, is_cut: bool = False) -> str:
    """Shorten all long ``data:`` URLs in a text, which may be the beginning of a longer one."""

    def shortened(match: re.Match[str]) -> str:
        return shortened_url(match[1], is_cut=is_cut and match.end() == len(text))

    return _DATA_URL.sub(shortened, text)


def ends_in_data_url(text: str) -> bool:
    """Return whether a text ends with a long ``data:`` URL, which the next text may continue."""
    return any(match.end() == len(text) for match in _DATA_URL.finditer(text))


def data_url_rest(text: str) -> str:
    """Remove the part of a text that continues a URL."""
    return re.sub(rf"\A{_URL_CHAR}+", "", text)
