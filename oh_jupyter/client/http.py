"""HTTP to one runtime: requests whose responses survive broken connections, streams, errors."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx

from oh_jupyter.control_messages import CLIENT_HEADER
from oh_jupyter.errors import (
    OhJupyterError,
    ServerError,
    WireError,
    error_from_fields,
)
from oh_jupyter.events import Event
from oh_jupyter.events.wire import from_wire
from oh_jupyter.loopback import is_local

BROKEN = (httpx.RemoteProtocolError, httpx.ReadError)
"""Errors of a connection that breaks before the response."""

MAX_FETCHES = 3
"""Failures in a row after which the response of a broken connection is given up."""

FETCH_WAIT_SECONDS = 15
"""Time that the server delays a fetch while there is no response; proxies wait longer."""

PROXY_FAILURES = (502, 503, 504)
"""Statuses of a proxy that has timed out, or got no response."""

STILL_RUNNING = 202
"""Status of a request without a response yet."""

ID_HEADER = "X-Request-ID"
"""Identifies a request, so that its response can be fetched after a broken connection."""


def new_request_id() -> str:
    """Return a unique id."""
    return uuid.uuid4().hex


class HttpConnection:
    """HTTP connections to one runtime.

    Paths are relative to the runtime's address; one with a leading slash is Jupyter's own.
    """

    def __init__(
        self,
        url: str,
        token: str,
        kernel_id: str | None,
        session_api_key: str | None,
        connect_timeout_seconds: float,
        client_name: str = "",
    ) -> None:
        base = url.rstrip("/")
        if "/oh_jupyter" not in base:
            base += "/oh_jupyter"
        self._address = base if kernel_id is None else f"{base}/kernels/{quote(kernel_id, safe='')}"
        self.server_address = base.partition("/kernels/")[0]
        self._jupyter = base.partition("/oh_jupyter")[0]
        headers = {}
        if token:
            headers["Authorization"] = f"token {token}"
        if session_api_key:
            headers["X-Session-API-Key"] = session_api_key
        if client_name:
            headers[CLIENT_HEADER] = client_name.encode("ascii", "replace").decode()
        timeout = httpx.Timeout(None, connect=connect_timeout_seconds)
        self._http = httpx.AsyncClient(
            headers=headers, timeout=timeout, trust_env=not is_local(base)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(
        self, method: str, path: str, *, request_id: str | None = None, **options: Any
    ) -> bytes:
        """Return the body of the response; one with an id survives a broken connection."""
        if request_id is not None:
            options["headers"] = {ID_HEADER: request_id}
        try:
            response = await self._http.request(method, self._url(path), **options)
            if request_id is not None and _is_from_proxy(response):
                response = await self._fetch(request_id)
        except BROKEN as error:
            if request_id is None:
                raise self._unreachable(error) from error
            response = await self._fetch(request_id)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.status_code >= 300:
            raise _failure(response.status_code, response.content)
        return response.content

    async def cancel(self, request_id: str) -> None:
        """Cancel a request with an id."""
        try:
            await self._http.delete(self._result_url(request_id))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    @asynccontextmanager
    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[httpx.Response]:
        """Stream a response; raises the errors of ``send`` for its status."""
        try:
            async with self._http.stream(method, self._url(path), **options) as response:
                if response.status_code >= 300:
                    raise _failure(response.status_code, await response.aread())
                yield response
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error

    async def _fetch(self, request_id: str) -> httpx.Response:
        """Fetch the response to a request whose connection broke; the work has continued."""
        params = {"wait": FETCH_WAIT_SECONDS}
        failures = 0
        while True:
            try:
                response = await self._http.get(self._result_url(request_id), params=params)
            except httpx.HTTPError as error:
                failures += 1
                if failures == MAX_FETCHES:
                    raise self._unreachable(error) from error
                continue
            failures = failures + 1 if _is_from_proxy(response) else 0
            if failures == MAX_FETCHES or (not failures and response.status_code != STILL_RUNNING):
                return response

    def _url(self, path: str) -> str:
        return self._jupyter + path if path.startswith("/") else f"{self._address}/{path}"

    def _result_url(self, request_id: str) -> str:
        return f"{self.server_address}/requests/{request_id}"

    def _unreachable(self, error: Exception) -> ServerError:
        return ServerError(
            f"{self.server_address} cannot be reached: {error}. Is the Jupyter server running, "
            "with oh_jupyter in its environment?"
        )


class EventReader:
    """Parser of server-sent events; ``last_id`` is where a new stream continues."""

    def __init__(self) -> None:
        self.last_id = ""
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Iterator[Event]:
        """Yield the event that a line completes; raise ServerError if the kernel is gone."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if fields.get("event") == "gone":
            raise ServerError(str(json.loads(fields["data"]).get("detail")), 503)
        if "id" in fields:
            self.last_id = fields["id"]
            try:
                yield from_wire(json.loads(fields["data"]))
            except WireError:
                return  # of a newer runtime's type


def _is_from_proxy(response: httpx.Response) -> bool:
    """Return whether a proxy has failed: all errors of the server are JSON."""
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    return response.status_code in PROXY_FAILURES and not is_json


def parsed(body: bytes) -> Any:
    """Parse the JSON of a response."""
    try:
        return json.loads(body)
    except ValueError:
        raise ServerError("The server's response is not JSON: is the address right?") from None


def _failure(status: int, body: bytes) -> OhJupyterError:
    """Return the error of a response, with the class that it has in the runtime if known."""
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    detail = str(data.get("detail") or data.get("message") or f"The server answered {status}")
    if known := error_from_fields(str(data.get("error")), detail, data):
        return known
    # Jupyter demands an XSRF token if the other one is wrong.
    if status == 403 and (detail.endswith(("Forbidden", "Invalid API Key")) or "_xsrf" in detail):
        detail += ". Check the token"
    return ServerError(detail, status)
