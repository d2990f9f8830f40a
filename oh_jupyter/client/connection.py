"""Sending requests, with patience for connections that break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from oh_jupyter.client.calls import ID_HEADER, Calls, Request, failure, unreachable

__all__ = ["BROKEN", "AsyncConnection", "Connection"]

T = TypeVar("T")

BROKEN = (httpx.RemoteProtocolError, httpx.ReadError)
"""What the HTTP library raises when a connection breaks while an answer is waited for."""

ATTEMPTS = 3
"""How often an answer is fetched whose connection broke."""

RUNNING = 202
"""Status of a request that has no answer yet."""


class Connection:
    """A pool of connections to one server."""

    def __init__(self, calls: Calls, timeout: float) -> None:
        """Prepare; nothing is sent yet.

        Args:
            calls: Where requests go.
            timeout: Seconds to connect.
        """
        self._calls = calls
        limits = httpx.Timeout(None, connect=timeout)
        self._http = httpx.Client(headers=calls.headers, timeout=limits)

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def send(self, request: Request[T]) -> T:
        """Send a request; one with an id loses no answer to a broken connection.

        Args:
            request: The request.

        Returns:
            What its reader makes of the answer.

        Raises:
            OhJupyterError: The server refused, or cannot be reached.
        """
        try:
            answer = self._request(request)
        except BROKEN as problem:
            if ID_HEADER not in request.options.get("headers", {}):
                raise unreachable(self._calls, problem) from problem
            answer = self._fetch(self._calls.fetch(request))
        except httpx.HTTPError as problem:
            raise unreachable(self._calls, problem) from problem
        if answer.status_code >= 300:
            raise failure(answer.status_code, answer.content)
        return request.read(answer.content)

    @contextmanager
    def stream(self, request: Request[Any]) -> Iterator[httpx.Response]:
        """Send a request whose answer is read bit by bit.

        Args:
            request: The request.

        Yields:
            The answer, once its head is there.

        Raises:
            OhJupyterError: The server refused, or cannot be reached.
        """
        try:
            with self._http.stream(request.method, request.path, **request.options) as answer:
                if answer.status_code >= 300:
                    raise failure(answer.status_code, answer.read())
                yield answer
        except httpx.ConnectError as problem:
            raise unreachable(self._calls, problem) from problem

    def _request(self, request: Request[Any]) -> httpx.Response:
        return self._http.request(request.method, request.path, **request.options)

    def _fetch(self, request: Request[Any], attempts: int = ATTEMPTS) -> httpx.Response:
        """Fetch an answer whose connection broke; the work itself has gone on."""
        try:
            answer = self._request(request)
            while answer.status_code == RUNNING:
                answer = self._request(request)
            return answer
        except httpx.HTTPError as problem:
            if attempts == 1:
                raise unreachable(self._calls, problem) from problem
            return self._fetch(request, attempts - 1)


class AsyncConnection:
    """`Connection` for an event loop."""

    def __init__(self, calls: Calls, timeout: float) -> None:
        """See ``Connection``."""
        self._calls = calls
        limits = httpx.Timeout(None, connect=timeout)
        self._http = httpx.AsyncClient(headers=calls.headers, timeout=limits)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def send(self, request: Request[T]) -> T:
        """See ``Connection.send``."""
        try:
            answer = await self._request(request)
        except BROKEN as problem:
            if ID_HEADER not in request.options.get("headers", {}):
                raise unreachable(self._calls, problem) from problem
            answer = await self._fetch(self._calls.fetch(request))
        except httpx.HTTPError as problem:
            raise unreachable(self._calls, problem) from problem
        if answer.status_code >= 300:
            raise failure(answer.status_code, answer.content)
        return request.read(answer.content)

    @asynccontextmanager
    async def stream(self, request: Request[Any]) -> AsyncIterator[httpx.Response]:
        """See ``Connection.stream``."""
        sent = self._http.stream(request.method, request.path, **request.options)
        try:
            async with sent as answer:
                if answer.status_code >= 300:
                    raise failure(answer.status_code, await answer.aread())
                yield answer
        except httpx.ConnectError as problem:
            raise unreachable(self._calls, problem) from problem

    async def _request(self, request: Request[Any]) -> httpx.Response:
        return await self._http.request(request.method, request.path, **request.options)

    async def _fetch(self, request: Request[Any], attempts: int = ATTEMPTS) -> httpx.Response:
        try:
            answer = await self._request(request)
            while answer.status_code == RUNNING:
                answer = await self._request(request)
            return answer
        except httpx.HTTPError as problem:
            if attempts == 1:
                raise unreachable(self._calls, problem) from problem
            return await self._fetch(request, attempts - 1)
