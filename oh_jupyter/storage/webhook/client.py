"""The HTTP side of webhooks: requests as the receiver expects them.

The client may be a `requests.Session`, an `httpx.Client`, or anything with their ``post``
and ``delete``.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import inspect
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import IO, Any, cast
from urllib.parse import quote

from oh_jupyter.storage.paths import path_key
from oh_jupyter.storage.webhook.changes import RefusedError
from oh_jupyter.storage.webhook.dispatcher import WebhookRequest
from oh_jupyter.storage.webhook.outbox import Waiting
from oh_jupyter.storage.webhook.signing import Signer

__all__ = ["WebhookClient"]

_SECONDS = 15.0
_SHORT_ANSWER_BYTES = 65536
_CHUNK_BYTES = 1 << 20
_TEMPORARY_STATUSES = {408, 425, 429}


class WebhookClient:
    """Where changes are reported to.

    Args:
        base_url: The address that paths are appended to as they are; no slash is added.
        client: What to send with; None for a `requests.Session` of our own.
        headers: Headers of our own session.
        signer: Signs what is sent, if the receiver wants that.
    """

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

    def send_file(self, request: WebhookRequest) -> None:
        """Report one change: a written file by its contents, or a deleted one.

        Args:
            request: The change.

        Raises:
            RefusedError: If the receiver does not accept it.
        """
        client, change = self.client, request.changes[0]
        if change.method == "DELETE":
            _check(
                client.delete(self.address(change.path), **self._options(request.id, b"", False))
            )
            return
        contents = request.contents[0]
        options = self._options(request.id, contents)
        name = "data" if _wants(client, "data", "content") else "content"
        options[name] = _as_body(client, contents)
        _check(client.post(self.address(change.path), **options))

    def send_batch(self, request: WebhookRequest) -> None:
        """Report several changes by one request.

        Args:
            request: The changes.

        Raises:
            RefusedError: If the receiver does not accept them.
        """
        items = [_item(*pair) for pair in zip(request.changes, request.contents, strict=True)]
        if self._signer is None and self._given is not None:
            options = {"json": items, **self._options(request.id, b"")}
        else:
            # The signature is one of the very bytes, so they cannot be left to the client.
            body = json.dumps(items).encode("ascii")
            options = self._options(request.id, body)
            options["data" if _wants(self.client, "data", "content") else "content"] = body
            options.setdefault("headers", {})["Content-Type"] = "application/json"
        _check(self.client.post(self.base_url, **options))

    def _options(self, id: str, body: bytes | IO[bytes], posts: bool = True) -> dict[str, Any]:
        """Gather what else the client is told about a request."""
        client = self.client
        options: dict[str, Any] = {}
        if _is_requests(client):
            # requests waits forever and takes headers to other hosts, unless told otherwise.
            options = {"timeout": _SECONDS, "allow_redirects": False, "stream": True}
        method = client.post if posts else client.delete
        if _takes(method, "headers"):
            stamp = str(int(time.time()))
            options["headers"] = {"webhook-id": id, "webhook-timestamp": stamp}
            if self._signer is not None:
                options["headers"]["webhook-signature"] = self._signer.sign(id, stamp, body)
        if _takes_by_name(method, "follow_redirects"):
            options["follow_redirects"] = False
        return options

    def address(self, path: str) -> str:
        """Find the URL of a file.

        Args:
            path: The file, as the writer gave it.

        Returns:
            The base URL and the path, percent-encoded. Dot segments are resolved, since
            HTTP clients would do that too, and differently.
        """
        key = path_key(path)
        start = "/" if path.startswith("/") else ""
        end = "/" if key and path.endswith("/") else ""
        return f"{self.base_url}{start}{quote(key)}{end}"


def _is_requests(client: Any) -> bool:
    requests = sys.modules.get("requests")
    return requests is not None and isinstance(client, requests.Session)


def _item(change: Waiting, contents: bytes | IO[bytes]) -> dict[str, str]:
    item: dict[str, str] = {"method": change.method, "path": change.path}
    if change.method == "POST":
        data = contents if isinstance(contents, bytes) else contents.read()
        try:
            item["content"] = data.decode("utf-8")
        except UnicodeDecodeError:
            item["content"] = base64.b64encode(data).decode("ascii")
            item["encoding"] = "base64"
    return item


def _as_body(client: Any, contents: bytes | IO[bytes]) -> Any:
    """Hand large contents over piece by piece, to clients that are known to take them so."""
    if isinstance(contents, bytes) or _is_requests(client):
        return contents
    if type(client).__module__.partition(".")[0] == "httpx":
        return iter(lambda: contents.read(_CHUNK_BYTES), b"")
    return contents.read()


def _wants(client: Any, this: str, other: str) -> bool:
    return _is_requests(client) or (
        _takes_by_name(client.post, this) and not _takes_by_name(client.post, other)
    )


def _takes(method: Any, name: str) -> bool:
    """Tell whether a method has a keyword, or takes any."""
    parameters = _parameters(method)
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _takes_by_name(method: Any, name: str) -> bool:
    return name in _parameters(method)


def _parameters(method: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return {}


def _check(response: Any) -> None:
    try:
        _check_status(response)
    finally:
        _finish(response)


def _finish(response: Any) -> None:
    """Read a short answer to its end, so that the connection can be used again."""
    if not _is_streamed(response):
        return
    length = response.headers.get("Content-Length", "")
    if response.status_code == 204 or (length.isdigit() and int(length) < _SHORT_ANSWER_BYTES):
        with contextlib.suppress(Exception):
            response.content  # noqa: B018  reading it is the point
    response.close()


def _is_streamed(response: Any) -> bool:
    requests = sys.modules.get("requests")
    return requests is not None and isinstance(response, requests.Response)


def _check_status(response: Any) -> None:
    status = getattr(response, "status_code", None)
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
