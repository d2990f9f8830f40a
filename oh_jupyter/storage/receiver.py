"""The HTTP side of webhooks: requests as the receiver expects them.

The client may be a `requests.Session`, an `httpx.Client`, or anything with their ``post``
and ``delete``.
"""

from __future__ import annotations

import email.utils
import inspect
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from oh_jupyter.storage.changes import RefusedError
from oh_jupyter.storage.paths import path_key

__all__ = ["Receiver"]

_SECONDS = 15.0
_TRY_AGAIN = {408, 425, 429}


class Receiver:
    """Where changes are reported to.

    Args:
        base_url: The address that paths are appended to as they are; no slash is added.
        client: What to send with; None for a `requests.Session` of our own.
        headers: Headers of our own session.
    """

    def __init__(
        self, base_url: str, client: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.base_url = base_url
        self._given = client
        self._headers = dict(headers or {})
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

    def post_file(self, path: str, contents: bytes) -> None:
        """Report a written file by its contents.

        Args:
            path: The file.
            contents: Its contents.

        Raises:
            RefusedError: If the receiver does not accept it.
        """
        client = self.client
        body = {"data" if _wants_data(client) else "content": contents}
        _check(client.post(self.address(path), **body, **_options(client)))

    def delete_file(self, path: str) -> None:
        """Report a deleted file.

        Args:
            path: The file.

        Raises:
            RefusedError: If the receiver does not accept it.
        """
        _check(self.client.delete(self.address(path), **_options(self.client)))

    def post_batch(self, items: list[dict[str, str]]) -> None:
        """Report several changes by one request.

        Args:
            items: The changes, as OpenHands' protocol has them.

        Raises:
            RefusedError: If the receiver does not accept them.
        """
        _check(self.client.post(self.base_url, json=items, **_options(self.client)))

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


def _options(client: Any) -> dict[str, Any]:
    # requests waits forever and takes headers to other hosts, unless told otherwise.
    return {"timeout": _SECONDS, "allow_redirects": False} if _is_requests(client) else {}


def _wants_data(client: Any) -> bool:
    if _is_requests(client):
        return True
    try:
        parameters = inspect.signature(client.post).parameters
    except (TypeError, ValueError):
        return False
    return "data" in parameters and "content" not in parameters


def _check(response: Any) -> None:
    status = getattr(response, "status_code", None)
    if not isinstance(status, int):
        response.raise_for_status()
    elif not 200 <= status < 300:
        raise RefusedError(
            f"HTTP status {status}",
            permanent=status < 500 and status not in _TRY_AGAIN,
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
    except ValueError:
        return None
