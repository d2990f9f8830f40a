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
        self._quick: _QuickClient | None = None

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

    def _quick_client(self) -> _QuickClient | None:
        if self._custom_client is not None:
            return None
        session = self.client
        if self._quick is None or not self._quick.matches(session):
            self._quick = _QuickClient(session, self.base_url)
        return self._quick if self._quick.is_usable else None

    def send_file(self, request: Request, bodies: Sequence[bytes | IO[bytes]]) -> None:
        """Report one change; raise `RefusedError` if the receiver does not accept it."""
        client, change = self.client, request.changes[0]
        address = self.base_url + self._suffix(change.path)
        contents = bodies[0] if change.method == "POST" else b""
        if isinstance(contents, bytes) and (quick := self._quick_client()) is not None:
            headers = self._webhook_headers(request.id, contents)
            _check(quick.send(change.method, self._suffix(change.path), headers, contents))
            return
        if change.method == "DELETE":
            _check(client.delete(address, **self._options(client.delete, request.id, b"")))
            return
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
            options["headers"] = self._webhook_headers(id, body)
        if "follow_redirects" in names:
            options["follow_redirects"] = False
        return options

    def _webhook_headers(self, id: str, body: bytes | IO[bytes]) -> dict[str, str]:
        stamp = str(int(time.time()))
        headers = {"webhook-id": id, "webhook-timestamp": stamp}
        if self._signer is not None:
            headers["webhook-signature"] = self._signer.sign(id, stamp, body)
        return headers

    def _suffix(self, path: str) -> str:
        """Return the end of a URL, with dot segments resolved, since clients differ in that."""
        key = path_key(path)
        start = "/" if path.startswith("/") else ""
        end = "/" if key and path.endswith("/") else ""
        return f"{start}{quote(key)}{end}"


class _QuickClient:
    """Fast path of a session: the same requests over its connections in a third of the time.

    It prepares a request once for a state of the session and a URL, not once for each request.
    """

    def __init__(self, session: Any, base_url: str) -> None:
        import requests
        from requests.utils import select_proxy

        self._session, self._state = session, _state(session)
        self._prepared = session.prepare_request(requests.Request("POST", base_url))
        settings = session.merge_environment_settings(
            self._prepared.url, {}, True, session.verify, session.cert
        )
        self._target = self._prepared.path_url
        self._headers = dict(self._prepared.headers)
        self._headers.pop("Content-Length", None)
        adapter = session.get_adapter(self._prepared.url)
        self.is_usable = (
            type(adapter) is requests.adapters.HTTPAdapter
            and hasattr(adapter, "get_connection_with_tls_context")
            and isinstance(session.auth, tuple | None)
            and not any(session.hooks.values())
            and not select_proxy(self._prepared.url, settings["proxies"])
            and base_url.endswith(self._target)
        )
        if self.is_usable:
            self._pool = adapter.get_connection_with_tls_context(
                self._prepared, settings["verify"], settings["proxies"], settings["cert"]
            )

    def matches(self, session: Any) -> bool:
        """Return whether the session is the same and its settings are unchanged."""
        return session is self._session and _state(session) == self._state

    def send(self, method: str, suffix: str, headers: Mapping[str, str], body: bytes) -> Any:
        """Send a request to the base URL plus a suffix; raise the exceptions of requests."""
        import requests
        from requests.cookies import extract_cookies_to_jar
        from urllib3.exceptions import HTTPError, NewConnectionError
        from urllib3.exceptions import TimeoutError as TimedOutError

        try:
            response = self._pool.urlopen(
                method,
                self._target + suffix,
                body=body if method == "POST" else None,
                headers={**self._headers, **headers},
                retries=False,
                redirect=False,
                assert_same_host=False,
                timeout=_TIMEOUT_SECONDS,
                preload_content=False,
            )
        except HTTPError as error:
            timed_out = isinstance(error, TimedOutError)
            if timed_out and not isinstance(error, NewConnectionError):
                raise requests.Timeout(str(error)) from error
            raise requests.ConnectionError(str(error)) from error
        if "Set-Cookie" in response.headers:
            extract_cookies_to_jar(  # type: ignore[no-untyped-call]
                self._session.cookies, self._prepared, response
            )
        return response


def _state(session: Any) -> Any:
    """Return all settings of a session that affect its requests."""
    mappings = (session.headers, session.proxies, session.params, session.adapters)
    hooks = [hook for each in session.hooks.values() for hook in each]
    settings = (session.auth, session.verify, session.cert, session.trust_env)
    return [*map(dict, mappings), list(session.cookies), hooks, settings]


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
    if requests is not None and isinstance(response, requests.Response):
        response = response.raw
    elif not hasattr(response, "drain_conn"):
        return
    length = response.headers.get("Content-Length", "")
    is_short = length.isdigit() and int(length) < _SHORT_RESPONSE_BYTES
    if response.status == 204 or is_short:
        with contextlib.suppress(Exception):
            response.drain_conn()
        response.release_conn()
    else:
        response.close()


def _check_status(response: Any) -> None:
    status = getattr(response, "status_code", None)
    if status is None and hasattr(response, "drain_conn"):  # a response of urllib3
        status = response.status
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
