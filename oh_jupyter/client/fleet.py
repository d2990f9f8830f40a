"""Several kernels of one Jupyter server that share the items of a task.

Jupyter starts and ends the kernels, on its own machine or through its gateway.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.client.http import HttpConnection, parsed
from oh_jupyter.client.sync_client import RuntimeClient
from oh_jupyter.client.thread import wait_in
from oh_jupyter.errors import (
    ConfigError,
    ExtensionMissingError,
    KernelDiedError,
    KernelNotFoundError,
    KernelTimeoutError,
    OhJupyterError,
    ServerError,
)
from oh_jupyter.events import Event

T = TypeVar("T")
R = TypeVar("R")

MAX_ATTEMPTS = 2
"""Attempts for an item whose kernel died; the item itself may kill kernels."""

MAX_UNREAD_EVENTS = 1000
LAST_EVENTS_SECONDS = 10.0
"""Time that a closing fleet waits for each further event of its kernels."""

CONNECT_SECONDS = 10.0
END_SECONDS = 60.0
"""Timeout of the server for ending a kernel."""

SESSION_TYPE = "fleet"
"""Type by which the panel recognizes the sessions of fleets."""

LOST = (KernelDiedError, KernelNotFoundError, KernelTimeoutError, ExtensionMissingError)
"""Errors of a kernel that is gone, has lost its runtime, or is silent."""


@dataclass(frozen=True)
class FleetResult(Generic[T, R]):
    """Result of an item.

    Attributes:
        item: The item.
        value: The function's result, or None.
        error: The function's error, or the loss of the kernel; None on success.
        attempts: Number of attempts: 2 if the first kernel was lost.
        kernel_id: The last kernel that worked on it; None if there was none.
    """

    item: T
    value: R | None = None
    error: Exception | None = None
    attempts: int = 0
    kernel_id: str | None = None


@dataclass(frozen=True)
class FleetEvent:
    """An event of one of the kernels.

    Attributes:
        kernel_id: The kernel.
        event: The Action or Observation.
    """

    kernel_id: str
    event: Event


@dataclass(frozen=True)
class Member:
    """A kernel with its client, and the generation of its runtime."""

    kernel_id: str
    runtime: AsyncRuntimeClient
    generation: str

    async def is_same_runtime(self) -> bool:
        """Return whether the runtime still has its state."""
        try:
            return await self.runtime.generation() == self.generation
        except LOST:
            return False


class KernelStarter:
    """Starts and ends kernels through Jupyter's REST interface, as sessions of a fleet."""

    def __init__(
        self, url: str, token: str, name: str, kernel: str | None, path: str | None
    ) -> None:
        self.url, self.token, self.name = url, token, name
        self._kernel, self._path = kernel, path
        self._connection = HttpConnection(url, token, None, None, CONNECT_SECONDS)

    async def start(self, slot: int) -> Member:
        """Start a kernel with a runtime, or raise OhJupyterError."""
        model = {
            "type": SESSION_TYPE,
            "name": f"Fleet {self.name} {slot + 1}",
            # Paths of sessions are unique; a kernel starts in the parent directory.
            "path": "/".join(filter(None, [(self._path or "").strip("/"), uuid.uuid4().hex])),
            "kernel": {"name": self._kernel} if self._kernel else {},
        }
        try:
            session = parsed(await self._connection.send("POST", "/api/sessions", json=model))
        except ServerError as error:
            kernel = self._kernel or "the server's default"
            raise ServerError(
                f"No kernel ({kernel}) can be started: {error}", error.status
            ) from None
        kernel_id = str(session["kernel"]["id"])
        runtime = AsyncRuntimeClient(self.url, self.token, kernel_id)
        try:
            await runtime.list_files()  # loads oh_jupyter
            return Member(kernel_id, runtime, await runtime.generation())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.end(kernel_id, runtime)
            raise

    async def end(self, kernel_id: str, runtime: AsyncRuntimeClient) -> None:
        """Shut a kernel down if it still exists."""
        try:
            await self._delete(kernel_id)
        except ServerError as error:
            if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return  # it is gone already
            with suppress(OhJupyterError):  # Jupyter cannot end a kernel while it restarts it
                await runtime.generation()
            with suppress(OhJupyterError):
                await self._delete(kernel_id)
        finally:
            await runtime.close()

    async def _delete(self, kernel_id: str) -> None:
        path = f"/api/kernels/{quote(kernel_id)}"
        await self._connection.send("DELETE", path, timeout=END_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()


class AsyncFleetKernels:
    """The kernels of a fleet, with asynchronous methods.

    Attributes:
        size: Number of kernels.
    """

    def __init__(self, starter: KernelStarter, size: int) -> None:
        self.size = size
        self._starter = starter
        self._members: list[Member | None] = [None] * size
        self._followers: list[Callable[[str], None]] = []
        self._closing = asyncio.Event()

    @property
    def kernel_ids(self) -> list[str]:
        """Ids of the current kernels."""
        return [member.kernel_id for member in self._members if member]

    async def start(self) -> None:
        """Start all kernels, or raise OhJupyterError."""
        starting = [self._member(slot) for slot in range(self.size)]
        for outcome in await asyncio.gather(*starting, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def close(self) -> None:
        """Shut all kernels down, even if the caller is cancelled."""
        self._closing.set()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*(self._end(slot) for slot in range(self.size)))
            await self._starter.close()

    async def map(
        self, function: Callable[[AsyncRuntimeClient, T], Awaitable[R]], items: Iterable[T]
    ) -> list[FleetResult[T, R]]:
        """Process every item in one of the kernels, one per kernel at a time.

        A kernel that dies or stops responding is replaced, and its item is retried once. Errors
        of the function are in the results; the other items continue.

        Args:
            function: Coroutine function of a kernel's client and an item.
            items: The items.

        Returns:
            The results in the order of the items.
        """
        results: list[FleetResult[T, R]] = [FleetResult(item) for item in items]
        remaining = iter(range(len(results)))

        async def work(slot: int) -> None:
            for number in remaining:
                results[number] = await self._process(slot, function, results[number].item)

        workers = [asyncio.ensure_future(work(slot)) for slot in range(self.size)]
        try:
            await asyncio.gather(*workers)
        finally:
            await _cancelled(*workers)
        return results

    async def _process(
        self, slot: int, function: Callable[[AsyncRuntimeClient, T], Awaitable[R]], item: T
    ) -> FleetResult[T, R]:
        result: FleetResult[T, R] = FleetResult(item)
        while result.attempts < MAX_ATTEMPTS:
            value, error, attempts = None, None, result.attempts + 1
            try:
                member = await self._member(slot)
            except OhJupyterError as failure:
                return FleetResult(item, None, failure, result.attempts, result.kernel_id)
            try:
                value = await function(member.runtime, item)
            except Exception as failure:
                error = failure
            # Even if the loss is known: Jupyter cannot end a kernel while it restarts it.
            if await member.is_same_runtime() and not isinstance(error, LOST):
                return FleetResult(item, value, error, attempts, member.kernel_id)
            lost = error if isinstance(error, LOST) else _lost(member.kernel_id)
            result = FleetResult(item, None, lost, attempts, member.kernel_id)
            await self._end(slot)
        return result

    async def _member(self, slot: int) -> Member:
        """Return the kernel of a slot, starting it if necessary."""
        member = self._members[slot]
        if member is None:
            member = self._members[slot] = await self._starter.start(slot)
            for follow in self._followers:
                follow(member.kernel_id)
        return member

    async def _end(self, slot: int) -> None:
        member, self._members[slot] = self._members[slot], None
        if member is not None:
            await self._starter.end(member.kernel_id, member.runtime)

    async def events(self) -> AsyncGenerator[FleetEvent, None]:
        """Yield the events of all kernels, including those that start later.

        Yields:
            The events until the fleet ends, in order for each kernel.
        """
        queue: asyncio.Queue[FleetEvent] = asyncio.Queue(MAX_UNREAD_EVENTS)
        pumps: set[asyncio.Future[None]] = set()

        def follow(kernel_id: str) -> None:
            pumps.add(asyncio.ensure_future(self._pump(kernel_id, queue)))

        self._followers.append(follow)
        for kernel_id in self.kernel_ids:
            follow(kernel_id)
        closing = asyncio.ensure_future(self._closing.wait())
        following = asyncio.ensure_future(queue.get())
        try:
            while True:
                pumping = {pump for pump in pumps if not pump.done()}
                if closing.done() and not pumping and not following.done():
                    return
                ends, limit = (
                    (pumping, LAST_EVENTS_SECONDS) if closing.done() else ({closing}, None)
                )
                done, _ = await asyncio.wait(
                    {following, *ends}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:  # an idle stream that the server has left open
                    return
                if following.done():
                    yield following.result()
                    following = asyncio.ensure_future(queue.get())
                    await asyncio.sleep(0)  # lets it finish if there is another event
        finally:
            self._followers.remove(follow)
            await _cancelled(closing, following, *pumps)

    async def _pump(self, kernel_id: str, sink: asyncio.Queue[FleetEvent]) -> None:
        """Forward the events of a kernel until it is gone."""
        async with AsyncRuntimeClient(self._starter.url, self._starter.token, kernel_id) as runtime:
            with suppress(OhJupyterError):
                async with aclosing(runtime.events()) as events:
                    async for event in events:
                        await sink.put(FleetEvent(kernel_id, event))


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _lost(kernel_id: str) -> KernelDiedError:
    return KernelDiedError(
        f"Kernel {kernel_id} died or was restarted while it processed the item; the state of its "
        "runtime is lost"
    )


class FleetKernels:
    """The kernels of a fleet, with blocking methods."""

    def __init__(
        self,
        kernels: AsyncFleetKernels,
        portal: BlockingPortal,
        connect: Callable[[str | None], RuntimeClient],
    ) -> None:
        self._kernels, self._portal, self._connect = kernels, portal, connect

    @property
    def size(self) -> int:
        """Number of kernels."""
        return self._kernels.size

    @property
    def kernel_ids(self) -> list[str]:
        """Ids of the current kernels."""
        return self._kernels.kernel_ids

    def map(
        self, function: Callable[[RuntimeClient, T], R], items: Iterable[T]
    ) -> list[FleetResult[T, R]]:
        """Process every item in one of the kernels, see ``AsyncFleetKernels.map``.

        Args:
            function: Function of a kernel's client and an item, called in a thread.
            items: The items.

        Returns:
            The results in the order of the items.
        """

        def call(kernel_id: str | None, item: T) -> R:
            with self._connect(kernel_id) as runtime:
                return function(runtime, item)

        async def work() -> list[FleetResult[T, R]]:
            threads = anyio.CapacityLimiter(self.size)

            async def call_in_thread(runtime: AsyncRuntimeClient, item: T) -> R:
                return await anyio.to_thread.run_sync(
                    call, runtime.kernel_id, item, limiter=threads, abandon_on_cancel=True
                )

            return await self._kernels.map(call_in_thread, items)

        return wait_in(self._portal, work)

    def events(self) -> Iterator[FleetEvent]:
        """Yield the events of all kernels, see ``AsyncFleetKernels.events``.

        Yields:
            The events.
        """
        events = self._kernels.events()

        async def next_event() -> FleetEvent | None:
            return await anext(events, None)

        try:
            while (event := wait_in(self._portal, next_event)) is not None:
                yield event
        finally:
            wait_in(self._portal, events.aclose)


class Fleet:
    """Kernels of a Jupyter server that live as long as a block, and share the items of a task.

    ::

        async with Fleet("http://127.0.0.1:8888", token, 8) as kernels:
            results = await kernels.map(function, items)

    A plain ``with`` gives the same with blocking functions. Actions in these kernels wait for a
    person according to the server's ``confirmation``.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        size: int = 2,
        *,
        kernel: str | None = None,
        path: str | None = None,
        name: str | None = None,
    ) -> None:
        """Describe the fleet; entering the block starts it.

        Args:
            url: The Jupyter server's address, such as ``http://127.0.0.1:8888``.
            token: The server's token.
            size: Number of kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Directory where they start, relative to the server's root.
            name: Name in JupyterLab; None for a random one.

        Raises:
            ConfigError: The size is not positive.
        """
        if size < 1:
            raise ConfigError(f"A fleet needs at least one kernel, not {size}")
        self._url, self._token, self._size = url.partition("/oh_jupyter")[0], token, size
        self._kernel, self._path, self._name = kernel, path, name or uuid.uuid4().hex[:4]
        self._kernels: AsyncFleetKernels | None = None
        self._opened = ExitStack()

    async def __aenter__(self) -> AsyncFleetKernels:
        """Start the kernels, or raise OhJupyterError."""
        starter = KernelStarter(self._url, self._token, self._name, self._kernel, self._path)
        self._kernels = AsyncFleetKernels(starter, self._size)
        try:
            await self._kernels.start()
        except BaseException:
            await self._kernels.close()
            raise
        return self._kernels

    async def __aexit__(self, *exc_info: object) -> None:
        """Shut the kernels down."""
        if self._kernels is not None:
            await self._kernels.close()

    def __enter__(self) -> FleetKernels:
        """Start the kernels, or raise OhJupyterError."""
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal())
            kernels = opened.enter_context(portal.wrap_async_context_manager(self))
            self._opened = opened.pop_all()
        return FleetKernels(kernels, portal, self._client)

    def __exit__(self, *exc_info: object) -> None:
        """Shut the kernels down."""
        self._opened.close()

    def _client(self, kernel_id: str | None) -> RuntimeClient:
        return RuntimeClient(self._url, self._token, kernel_id)
