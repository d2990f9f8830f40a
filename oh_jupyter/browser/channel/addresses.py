"""Which origins a browser may reach.

Three fences. Requests are checked by scheme, host and port before they are sent. Chromium's own
network has no way to what is out of bounds, which stops what is never asked about: redirects,
workers and sockets. And a frame that shows a forbidden page nevertheless is emptied, which is
what is left of it in a browser that runs already and was started by somebody else.
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

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request, Route

LOCAL_SCHEMES = frozenset(
    {"about", "blob", "chrome-error", "chrome-extension", "data", "javascript"}
)
"""Schemes that reach nothing."""
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
HTTP_SCHEMES = {"ws": "http", "wss": "https"}
WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss"}
ORIGIN_EXAMPLES = "Examples: https://example.org, *.example.org, http://localhost:8888, file://"
UNREACHABLE_PROXY_HOST = "blocked.invalid"
"""A proxy that does not exist: where requests go that may go nowhere."""

_HOST = re.compile(r"[\w.*?-]+|[0-9a-f:.]*:[0-9a-f:.]*")
"""A name with wildcards, or an address of IPv6."""


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
            # Of other addresses, such as javascript:alert(1), what follows is no port.
            is_port = separator or rest.rpartition(":")[2].isdecimal()
            why = f": {error}." if is_port else "."
            raise BrowserError(f"{text!r} is not an origin{why} {ORIGIN_EXAMPLES}") from None
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
        """The pattern as Chromium's rules say for what a proxy is not asked."""
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
    """An allow-list and a block-list; what is on both is blocked."""

    def __init__(self, allowed: Iterable[str], blocked: Iterable[str]) -> None:
        """Read lists of origins such as ``https://*.example.org``; none allowed allows all."""
        self._allowed = [_Pattern.parse(text) for text in allowed]
        self._blocked = [_Pattern.parse(text) for text in blocked]

    def allows(self, url: str) -> bool:
        """Tell whether an address may be reached."""
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
        """Tell whether anything is out of bounds."""
        return bool(self._allowed or self._blocked)

    def arguments(self) -> list[str]:
        """Say it to Chromium's network, for what passes the other fence.

        What may not be looked up, or has to go through a proxy that does not exist, reaches
        nothing, whoever asks for it.
        """
        if not self:
            return []
        found = [f"MAP {UNREACHABLE_PROXY_HOST} ~NOTFOUND"]
        arguments = ["--force-webrtc-ip-handling-policy=disable_non_proxied_udp"]
        for pattern in self._blocked:
            if pattern.host:
                port = "" if pattern.port is None else f":{pattern.port}"
                found.append(f"MAP {pattern.host}{port} ~NOTFOUND")
        if self._allowed:
            hosts = {pattern.host for pattern in self._allowed if pattern.host}
            if "*" not in hosts:
                found.append("MAP * ~NOTFOUND")
                found += [f"EXCLUDE {host}" for host in sorted(hosts)]
            direct = [rule for pattern in self._allowed if pattern.host for rule in pattern.rules()]
            # By itself Chromium asks no proxy about loopback addresses.
            arguments.append(f"--proxy-bypass-list={';'.join(['<-loopback>', *direct])}")
            arguments.append(f"--proxy-server={UNREACHABLE_PROXY_HOST}:1")
        return [*arguments, f"--host-resolver-rules={', '.join(found)}"]

    async def install(self, context: BrowserContext) -> None:
        """Hold back the requests of a context that may not be sent."""
        if self:
            await context.route(lambda url: not self.allows(url), _refuse)

    def watch(self, context: BrowserContext, losses: list[str], notices: list[str]) -> None:
        """Empty the frames that show what they may not; ``losses`` gets what befell the page."""
        if not self:
            return
        running: set[asyncio.Task[None]] = set()

        def failed(request: Request) -> None:
            if self.allows(request.url):
                return
            origin = _origin(request.url)
            notice = f"Requests to {origin} are blocked: it is not allowed."
            said = notices
            if request.redirected_from is not None and _is_main(request):
                notice = f"A redirect to {origin} was stopped: it is not allowed in this browser."
                said = losses
            if notice not in said:
                said.append(notice)

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
    """Tell whether a request is for the page itself."""
    try:
        return request.is_navigation_request() and request.frame.parent_frame is None
    except Exception:  # a page that is only coming to be has no frame yet
        return request.is_navigation_request()


async def _empty(frame: Frame) -> None:
    with contextlib.suppress(Exception):
        await frame.goto("about:blank")


async def _refuse(route: Route) -> None:
    await route.abort("blockedbyclient")


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.I)
_TYPED_HOST = re.compile(r"(localhost|([\w-]+\.)+[a-z]{2,}|(\d+\.){3}\d+)(:\d+)?([/?#]\S*)?", re.I)
"""An address as people type it, without a scheme."""


def typed_address(url: str, folder: str) -> str:
    """Turn the path of a file, or a host, into an address; leave everything else as it is."""
    if not url or _SCHEME.match(url):
        return url
    if _TYPED_HOST.fullmatch(url) and not os.path.exists(os.path.join(folder, url)):
        return f"http://{url}"
    path = Path(url).expanduser()
    if not path.is_absolute():
        path = Path(folder) / path
    return path.resolve().as_uri() if path.is_absolute() and path.exists() else url


MAX_DATA_CHARS = 60
"""Characters of a ``data:`` address that are shown; the rest is counted."""
_SIGN = r"[^\s'\"<>)\]]"
_DATA_URL = re.compile(
    rf"(?<![\w.+-])(data:[\w!#$&^.+-]*/?[\w!#$&^.+-]*[;,]{_SIGN}{{{MAX_DATA_CHARS},}})", re.I
)


def shortened_url(url: str) -> str:
    """Shorten a ``data:`` address; leave all others as they are."""
    if url[:5].lower() != "data:" or len(url) <= MAX_DATA_CHARS:
        return url
    return f"{url[:MAX_DATA_CHARS]}…({len(url)} characters)"


def shortened_urls(text: str) -> str:
    """Shorten all long ``data:`` addresses in a text."""
    return _DATA_URL.sub(lambda found: shortened_url(found[1]), text)


def ends_in_data_url(text: str) -> bool:
    """Tell whether a text ends with a long ``data:`` address, which may go on in another text."""
    return any(found.end() == len(text) for found in _DATA_URL.finditer(text))


def data_url_rest(text: str) -> str:
    """Leave out the signs with which a text goes on with an address."""
    return re.sub(rf"\A{_SIGN}+", "", text)
