"""HTTP to one runtime: requests whose answers survive broken connections, streams, errors."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx

from oh_jupyter.errors import (
    OhJupyterError,
    ServerError,
    WireError,
    error_from_fields,
)
from oh_jupyter.events import Event
from oh_jupyter.events.wire import from_wire

BROKEN = (httpx.RemoteProtocolError, httpx.ReadError)
"""What the HTTP library raises when a connection breaks while an answer is waited for."""

MAX_FETCHES = 3
"""How often an answer is fetched whose connection broke."""

FETCH_WAIT_SECONDS = 15
"""How long the server holds a fetch back while there is no answer; proxies wait longer."""

PROXY_FAILURES = (502, 503, 504)
"""Statuses by which a proxy on the way says that it has waited long enough, or got nothing."""

STILL_RUNNING = 202
"""Status of a request that has no answer yet."""

ID_HEADER = "X-Request-ID"
"""Names a request, so that its answer can be fetched after a broken connection."""


def new_request_id() -> str:
    """An id that no other request has."""
    return uuid.uuid4().hex


class Connection:
    """Connections to the server of one runtime.

    Paths are those below the runtime's address; one that begins with a slash is Jupyter's own.
    """

    def __init__(
        self,
        url: str,
        token: str,
        kernel_id: str | None,
        session_api_key: str | None,
        connect_timeout_seconds: float,
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
        timeout = httpx.Timeout(None, connect=connect_timeout_seconds)
        self._http = httpx.AsyncClient(headers=headers, timeout=timeout)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def send(
        self, method: str, path: str, *, request_id: str | None = None, **options: Any
    ) -> bytes:
        """The body of the answer, with an id not lost to a broken connection; OhJupyterError."""
        if request_id is not None:
            options["headers"] = {ID_HEADER: request_id}
        try:
            answer = await self._http.request(method, self._full(path), **options)
            if request_id is not None and _is_of_proxy(answer):
                answer = await self._fetch(request_id)
        except BROKEN as problem:
            if request_id is None:
                raise self._unreachable(problem) from problem
            answer = await self._fetch(request_id)
        except httpx.HTTPError as problem:
            raise self._unreachable(problem) from problem
        if answer.status_code >= 300:
            raise _failure(answer.status_code, answer.content)
        return answer.content

    async def take_back(self, request_id: str) -> None:
        """Cancel a request that has an id."""
        try:
            await self._http.delete(self._result_address(request_id))
        except httpx.HTTPError as problem:
            raise self._unreachable(problem) from problem

    @asynccontextmanager
    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[httpx.Response]:
        """An answer that is read bit by bit, once its head is there; errors as those of send."""
        sent = self._http.stream(method, self._full(path), **options)
        try:
            async with sent as answer:
                if answer.status_code >= 300:
                    raise _failure(answer.status_code, await answer.aread())
                yield answer
        except httpx.ConnectError as problem:
            raise self._unreachable(problem) from problem

    async def _fetch(self, request_id: str) -> httpx.Response:
        """The answer of a request whose connection broke; the work itself has gone on."""
        params = {"wait": FETCH_WAIT_SECONDS}
        broken = 0
        while True:
            try:
                answer = await self._http.get(self._result_address(request_id), params=params)
            except httpx.HTTPError as problem:
                broken += 1
                if broken == MAX_FETCHES:
                    raise self._unreachable(problem) from problem
                continue
            broken = broken + 1 if _is_of_proxy(answer) else 0
            if broken == MAX_FETCHES or (not broken and answer.status_code != STILL_RUNNING):
                return answer

    def _full(self, path: str) -> str:
        return self._jupyter + path if path.startswith("/") else f"{self._address}/{path}"

    def _result_address(self, request_id: str) -> str:
        return f"{self.server_address}/requests/{request_id}"

    def _unreachable(self, problem: Exception) -> ServerError:
        return ServerError(
            f"{self.server_address} cannot be reached: {problem}. Is the Jupyter server running, "
            "with oh_jupyter in its environment?"
        )


class SentEvents:
    """Reads server-sent events line by line; ``last`` is the id to go on from."""

    def __init__(self) -> None:
        self.last = ""
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Iterator[Event]:
        """The event that a line, without its end, completes; ServerError if the kernel is gone."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if fields.get("event") == "gone":
            raise ServerError(str(json.loads(fields["data"]).get("detail")), 503)
        if "id" in fields:
            self.last = fields["id"]
            try:
                yield from_wire(json.loads(fields["data"]))
            except WireError:
                return  # of a type that a newer runtime knows


def _is_of_proxy(answer: httpx.Response) -> bool:
    """Whether a proxy on the way has answered, and not the server: all of its errors are JSON."""
    of_server = answer.headers.get("Content-Type", "").startswith("application/json")
    return answer.status_code in PROXY_FAILURES and not of_server


def parsed(body: bytes) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(body)
    except ValueError:
        raise ServerError("The server's answer is not JSON: is the address right?") from None


def _failure(status: int, body: bytes) -> OhJupyterError:
    """The error that an answer tells of, of the same class as in the runtime if it is known."""
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    detail = str(data.get("detail") or data.get("message") or f"The server answered {status}")
    if known := error_from_fields(str(data.get("error")), detail, data):
        return known
    # Jupyter asks for an XSRF token where the other one is wrong.
    if status == 403 and (detail.endswith(("Forbidden", "Invalid API Key")) or "_xsrf" in detail):
        detail += ". Check the token"
    return ServerError(detail, status)
