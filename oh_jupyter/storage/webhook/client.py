"""The HTTP side of webhooks, by a `requests.Session`, an `httpx.Client` or the like."""

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
from urllib.parse import quote

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.storage.paths import path_key
from oh_jupyter.storage.webhook.change_table import QueuedChange
from oh_jupyter.storage.webhook.changes import RefusedError
from oh_jupyter.storage.webhook.in_flight import WebhookRequest

_TIMEOUT_SECONDS = 15.0
_SHORT_ANSWER_BYTES = 65536
_CHUNK_BYTES = 1 << 20
# 404 is also what a proxy says while the receiver behind it is being started.
_TEMPORARY_STATUSES = {404, 408, 425, 429}


class Signer:
    """Signs requests by the Standard Webhooks scheme, with several secrets if need be."""

    def __init__(self, secrets: str | Sequence[str]) -> None:
        given = secrets.split() if isinstance(secrets, str) else list(secrets)
        try:
            self._keys = [
                base64.b64decode(secret.removeprefix("whsec_"), validate=True) for secret in given
            ]
        except (binascii.Error, ValueError, AttributeError):
            self._keys = []
        if not self._keys or not all(self._keys):
            # Without the value, and without the error that quotes it.
            raise StoreConfigError(
                "A secret of the webhook is not 'whsec_' and base64; "
                "make one with: echo whsec_$(openssl rand -base64 24)"
            ) from None

    def sign(self, id: str, timestamp: str, body: bytes | IO[bytes]) -> str:
        """Value of ``webhook-signature``, one per secret; a file is read, and rewound."""
        hashes = [
            hmac.new(key, f"{id}.{timestamp}.".encode(), hashlib.sha256) for key in self._keys
        ]
        if isinstance(body, bytes):
            for hashing in hashes:
                hashing.update(body)
        else:
            while piece := body.read(_CHUNK_BYTES):
                for hashing in hashes:
                    hashing.update(piece)
            body.seek(0)
        return " ".join(f"v1,{base64.b64encode(h.digest()).decode()}" for h in hashes)


class WebhookClient:
    """Reports changes to an address, to which paths are appended as they are."""

    def __init__(
        self,
        base_url: str,
        client: Any = None,
        headers: Mapping[str, str] | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.base_url = base_url
        self._given = client
        self._headers = dict(headers or {})
        self._signer = signer
        self._own: tuple[int, Any] | None = None
        self._quick: _QuickClient | None = None

    @property
    def client(self) -> Any:
        """What is sent with; our own session is made at first use, and after a fork."""
        if self._given is not None:
            return self._given
        if self._own is None or self._own[0] != os.getpid():
            import requests

            session = requests.Session()
            session.headers.update(self._headers)
            self._own = (os.getpid(), session)
        return self._own[1]

    def _quick_client(self) -> _QuickClient | None:
        if self._given is not None:
            return None
        session = self.client
        if self._quick is None or not self._quick.is_like(session):
            self._quick = _QuickClient(session, self.base_url)
        return self._quick if self._quick.is_possible else None

    def send_file(self, request: WebhookRequest) -> None:
        """Report one change, a written file by its contents; `RefusedError` if not accepted."""
        client, change = self.client, request.changes[0]
        address = self.address(change.path)
        contents = request.contents[0] if change.method == "POST" else b""
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

    def send_batch(self, request: WebhookRequest) -> None:
        """Report several changes by one request; `RefusedError` if not accepted."""
        items = [_item(*pair) for pair in zip(request.changes, request.contents, strict=True)]
        post = self.client.post
        if self._signer is None and self._given is not None:
            options = {"json": items, **self._options(post, request.id, b"")}
        else:
            # The signature is one of the very bytes, so they cannot be left to the client.
            body = json.dumps(items).encode("ascii")
            options = self._options(post, request.id, body)
            options[self._body_name] = body
            options.setdefault("headers", {})["Content-Type"] = "application/json"
        _check(post(self.base_url, **options))

    @property
    def _body_name(self) -> str:
        """The keyword by which the client takes bytes."""
        if _is_requests(self.client):
            return "data"
        names = _keywords(self.client.post)
        return "data" if "data" in names and "content" not in names else "content"

    def _options(self, method: Any, id: str, body: bytes | IO[bytes]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if _is_requests(self.client):
            # requests waits forever and takes headers to other hosts, unless told otherwise.
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

    def address(self, path: str) -> str:
        """URL of a file, with dot segments resolved, which clients would do differently."""
        return self.base_url + self._suffix(path)

    def _suffix(self, path: str) -> str:
        key = path_key(path)
        start = "/" if path.startswith("/") else ""
        end = "/" if key and path.endswith("/") else ""
        return f"{start}{quote(key)}{end}"


class _QuickClient:
    """Sends what a session would, on its connections, in a third of the time.

    What requests prepares for each request anew holds for one state of the session and one URL.
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
        self.is_possible = (
            type(adapter) is requests.adapters.HTTPAdapter
            and hasattr(adapter, "get_connection_with_tls_context")
            and isinstance(session.auth, tuple | None)
            and not any(session.hooks.values())
            and not select_proxy(self._prepared.url, settings["proxies"])
            and base_url.endswith(self._target)
        )
        if self.is_possible:
            self._pool = adapter.get_connection_with_tls_context(
                self._prepared, settings["verify"], settings["proxies"], settings["cert"]
            )

    def is_like(self, session: Any) -> bool:
        """Whether the session is the same, and would still send the same."""
        return session is self._session and _state(session) == self._state

    def send(self, method: str, suffix: str, headers: Mapping[str, str], body: bytes) -> Any:
        """Make a request to the base URL and a suffix; errors are those of requests."""
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
    """All of a session that decides what its requests are like."""
    settings = (session.auth, session.verify, session.cert, session.trust_env)
    hooks = [hook for each in session.hooks.values() for hook in each]
    return (
        dict(session.headers),
        list(session.cookies),
        dict(session.proxies),
        dict(session.params),
        dict(session.adapters),
        settings,
        hooks,
    )


def _is_requests(client: Any) -> bool:
    requests = sys.modules.get("requests")
    return requests is not None and isinstance(client, requests.Session)


def _item(change: QueuedChange, contents: bytes | IO[bytes]) -> dict[str, str]:
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
    """Hand large contents over piece by piece, to clients that are known to take them so."""
    if isinstance(contents, bytes) or _is_requests(client):
        return contents
    if type(client).__module__.partition(".")[0] == "httpx":
        return iter(lambda: contents.read(_CHUNK_BYTES), b"")
    return contents.read()


def _keywords(method: Any) -> frozenset[str]:
    """Names of a method's parameters, and ``**`` if it takes any."""
    # Of the function, so that the cache does not keep its object.
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
    """Read a short answer to its end, so that the connection can be used again."""
    requests = sys.modules.get("requests")
    if requests is not None and isinstance(response, requests.Response):
        response = response.raw
    elif not hasattr(response, "drain_conn"):
        return
    length = response.headers.get("Content-Length", "")
    is_short = length.isdigit() and int(length) < _SHORT_ANSWER_BYTES
    if response.status == 204 or is_short:
        with contextlib.suppress(Exception):
            response.drain_conn()
        response.release_conn()
    else:
        response.close()


def _check_status(response: Any) -> None:
    status = getattr(response, "status_code", None)
    if status is None and hasattr(response, "drain_conn"):  # urllib3's
        status = response.status
    if not isinstance(status, int):
        response.raise_for_status()
    elif not 200 <= status < 300:
        raise RefusedError(
            f"HTTP status {status}",
            permanent=status < 500 and status not in _TEMPORARY_STATUSES,
            retry_after=_retry_after(response),
        )


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
