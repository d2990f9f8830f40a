"""HTTP requests of webhooks, sent by a `requests.Session`, an `httpx.Client` or the like."""

from __future__ import annotations

import base64
import binascii
import contextlib
import email.utils
import hashlib
import hmac
import inspect
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, cast
from urllib.parse import quote, urlsplit

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.loopback import is_local
from oh_jupyter.storage.paths import path_key
from oh_jupyter.storage.webhook.changes import Failure, PendingChange, RefusedError, Request

_TIMEOUT_SECONDS = 15.0
MAX_ADDRESS_CHARS = 200
_SHORT_RESPONSE_BYTES = 65536
_CHUNK_BYTES = 1 << 20
# Proxies return 404 while the receiver behind them starts.
_TEMPORARY_STATUSES = {404, 408, 425, 429}


class Signer:
    """Signs requests by the Standard Webhooks scheme with one or more secrets."""

    def __init__(self, secrets: str | Sequence[str]) -> None:
        secrets = secrets.split() if isinstance(secrets, str) else secrets
        try:
            self._keys = [
                base64.b64decode(secret.removeprefix("whsec_"), validate=True) for secret in secrets
            ]
        except (binascii.Error, ValueError, AttributeError):
            self._keys = []
        if not self._keys or not all(self._keys):
            # Without the value, and without the error that quotes it.
            raise StoreConfigError(
                "A webhook secret is not 'whsec_' followed by base64; "
                "create one with: echo whsec_$(openssl rand -base64 24)"
            ) from None

    def sign(self, id: str, timestamp: str, body: bytes | IO[bytes]) -> str:
        """Return the value of ``webhook-signature``; a file is read and rewound."""
        macs = [hmac.new(key, f"{id}.{timestamp}.".encode(), hashlib.sha256) for key in self._keys]
        if isinstance(body, bytes):
            for mac in macs:
                mac.update(body)
        else:
            while chunk := body.read(_CHUNK_BYTES):
                for mac in macs:
                    mac.update(chunk)
            body.seek(0)
        return " ".join(f"v1,{base64.b64encode(mac.digest()).decode()}" for mac in macs)


class WebhookClient:
    """Reports changes to a base URL, to which paths are appended unchanged."""

    def __init__(
        self,
        base_url: str,
        client: Any = None,
        headers: Mapping[str, str] | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.base_url = base_url
        self._custom_client = client
        self._headers = dict(headers or {})
        self._signer = signer
        self._own_session: tuple[int, Any] | None = None

    @property
    def client(self) -> Any:
        """HTTP client; the default session is created at first use and after a fork."""
        if self._custom_client is not None:
            return self._custom_client
        if self._own_session is None or self._own_session[0] != os.getpid():
            import requests

            session = requests.Session()
            session.headers.update(self._headers)
            session.trust_env = not is_local(self.base_url)
            self._own_session = (os.getpid(), session)
        return self._own_session[1]

    def send_file(self, request: Request, bodies: Sequence[bytes | IO[bytes]]) -> None:
        """Report one change; raise `RefusedError` if the receiver does not accept it."""
        client, change = self.client, request.changes[0]
        address = self._address(change.path)
        if change.method == "DELETE":
            _check(client.delete(address, **self._options(client.delete, request.id, b"")))
            return
        contents = bodies[0]
        options = self._options(client.post, request.id, contents)
        options[self._body_name] = _body(client, contents)
        _check(client.post(address, **options))

    def send_batch(self, request: Request, bodies: Sequence[bytes | IO[bytes]]) -> None:
        """Report several changes; raise `RefusedError` if the receiver does not accept them."""
        items = [_item(*pair) for pair in zip(request.changes, bodies, strict=True)]
        post = self.client.post
        if self._signer is None and self._custom_client is not None:
            options = {"json": items, **self._options(post, request.id, b"")}
        else:
            # The signature covers the exact bytes, so the client must not encode them.
            body = json.dumps(items).encode("ascii")
            options = self._options(post, request.id, body)
            options[self._body_name] = body
            options.setdefault("headers", {})["Content-Type"] = "application/json"
        _check(post(self.base_url, **options))

    @property
    def _body_name(self) -> str:
        """Keyword argument of the client for a body of bytes."""
        if _is_requests(self.client):
            return "data"
        names = _keywords(self.client.post)
        return "data" if "data" in names and "content" not in names else "content"

    def _options(self, method: Any, id: str, body: bytes | IO[bytes]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if _is_requests(self.client):
            # By default, requests has no timeout and sends headers to other hosts on redirects.
            options = {"timeout": _TIMEOUT_SECONDS, "allow_redirects": False, "stream": True}
        names = _keywords(method)
        if "headers" in names or "**" in names:
            stamp = str(int(time.time()))
            options["headers"] = {"webhook-id": id, "webhook-timestamp": stamp}
            if self._signer is not None:
                options["headers"]["webhook-signature"] = self._signer.sign(id, stamp, body)
        if "follow_redirects" in names:
            options["follow_redirects"] = False
        return options

    def _address(self, path: str) -> str:
        """Return the URL of a path, with dot segments resolved, since clients differ in that."""
        key = path_key(path)
        start = "/" if path.startswith("/") else ""
        end = "/" if key and path.endswith("/") else ""
        return f"{self.base_url}{start}{quote(key)}{end}"


def _is_requests(client: Any) -> bool:
    requests = sys.modules.get("requests")
    return requests is not None and isinstance(client, requests.Session)


def _item(change: PendingChange, contents: bytes | IO[bytes]) -> dict[str, str]:
    item: dict[str, str] = {"method": change.method, "path": change.path}
    if change.method == "POST":
        data = contents if isinstance(contents, bytes) else contents.read()
        try:
            item["content"] = data.decode("utf-8")
        except UnicodeDecodeError:
            item["content"] = base64.b64encode(data).decode("ascii")
            item["encoding"] = "base64"
    return item


def _body(client: Any, contents: bytes | IO[bytes]) -> Any:
    """Return the request body; stream large contents if the client is known to support it."""
    if isinstance(contents, bytes) or _is_requests(client):
        return contents
    if type(client).__module__.partition(".")[0] == "httpx":
        return iter(lambda: contents.read(_CHUNK_BYTES), b"")
    return contents.read()


def _keywords(method: Any) -> frozenset[str]:
    """Return the names of a method's parameters, and ``**`` if it accepts any."""
    # The function, not the bound method: the cache must not keep the client alive.
    return _keywords_of(getattr(method, "__func__", method))


@lru_cache(maxsize=32)
def _keywords_of(function: Any) -> frozenset[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    any_name = {"**"} if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else set()
    return frozenset(parameters) | any_name


def _check(response: Any) -> None:
    try:
        _check_status(response)
    finally:
        _finish(response)


def _finish(response: Any) -> None:
    """Read a short response to its end, so that the connection can be reused."""
    requests = sys.modules.get("requests")
    if requests is None or not isinstance(response, requests.Response):
        return
    length = response.headers.get("Content-Length", "")
    is_short = length.isdigit() and int(length) < _SHORT_RESPONSE_BYTES
    if response.status_code == 204 or is_short:
        with contextlib.suppress(Exception):
            response.raw.drain_conn()
        response.raw.release_conn()
    else:
        response.close()


def _check_status(response: Any) -> None:
    status = getattr(response, "status_code", None)
    if not isinstance(status, int):
        response.raise_for_status()
    elif not 200 <= status < 300:
        permanent = status < 500 and status not in _TEMPORARY_STATUSES
        reason, retry_after = f"HTTP status {status}{_target(response)}", _retry_after(response)
        raise RefusedError(Failure(reason, permanent=permanent, retry_after=retry_after))


def _target(response: Any) -> str:
    """Return the address that a redirect names, without a password, as a clause, or ""."""
    headers = cast(Mapping[str, str], getattr(response, "headers", None) or {})
    location = headers.get("Location")
    if not location:
        return ""
    parts = urlsplit(str(location))
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return f", a redirect to {shown[:MAX_ADDRESS_CHARS]}; set the webhook's address to it"


def _retry_after(response: Any) -> float | None:
    headers = cast(Mapping[str, str], getattr(response, "headers", None) or {})
    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None
