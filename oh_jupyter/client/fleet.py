"""Several kernels of one Jupyter server that share the items of some work.

Jupyter starts, places and ends the kernels: on its own machine, or where its gateway does.
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
from oh_jupyter.client.http import Connection, parsed
from oh_jupyter.client.sync_client import RuntimeClient, wait_in
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
"""An item whose kernel died is begun once more, and no more: it may be what kills them."""

MAX_UNREAD_EVENTS = 1000
LAST_EVENTS_SECONDS = 10.0
"""How long a fleet that has ended waits for each further event of its kernels."""

CONNECT_SECONDS = 10.0
END_SECONDS = 60.0
"""How long a server may take to end a kernel, before the others go on without."""

SESSION_TYPE = "fleet"
"""By what the panel tells the sessions of fleets from those of notebooks."""

LOST = (KernelDiedError, KernelNotFoundError, KernelTimeoutError, ExtensionMissingError)
"""What says that a kernel which had a runtime is no more, has none any more, or is silent."""


@dataclass(frozen=True)
class FleetResult(Generic[T, R]):
    """What became of an item.

    Attributes:
        item: The item.
        value: What the function returned for it, or None.
        error: What it raised, or how its kernel was lost; None if all went well.
        attempts: How often it was begun: twice if its first kernel was lost.
        kernel_id: The kernel that had it last; None if there was none.
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
    """A kernel with a client of it, and the generation of its runtime."""

    kernel_id: str
    runtime: AsyncRuntimeClient
    generation: str

    async def is_the_same(self) -> bool:
        """Whether the runtime is the one that was started, with the state it had."""
        try:
            return await self.runtime.generation() == self.generation
        except LOST:
            return False


class KernelStarter:
    """Starts and ends kernels by Jupyter's own REST interface, as sessions of a fleet's name."""

    def __init__(
        self, url: str, token: str, name: str, kernel: str | None, path: str | None
    ) -> None:
        self.url, self.token, self.name = url, token, name
        self._kernel, self._path = kernel, path
        self._connection = Connection(url, token, None, None, CONNECT_SECONDS)

    async def start(self, place: int) -> Member:
        """Start a kernel with a runtime for a place; OhJupyterError if it cannot be."""
        wanted = {
            "type": SESSION_TYPE,
            "name": f"Fleet {self.name} {place + 1}",
            # No two sessions have one path; a kernel starts in what is above it.
            "path": "/".join(filter(None, [(self._path or "").strip("/"), uuid.uuid4().hex])),
            "kernel": {"name": self._kernel} if self._kernel else {},
        }
        try:
            session = parsed(await self._connection.send("POST", "/api/sessions", json=wanted))
        except ServerError as problem:
            kernel = self._kernel or "the server's default"
            raise ServerError(
                f"No kernel ({kernel}) can be started: {problem}", problem.status
            ) from None
        kernel_id = str(session["kernel"]["id"])
        runtime = AsyncRuntimeClient(self.url, self.token, kernel_id)
        try:
            await runtime.list_files()  # which loads oh_jupyter
            return Member(kernel_id, runtime, await runtime.generation())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.end(kernel_id, runtime)
            raise

    async def end(self, kernel_id: str, runtime: AsyncRuntimeClient) -> None:
        """End a kernel, if it is still there."""
        try:
            await self._delete(kernel_id)
        except ServerError as problem:
            if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return  # it is gone
            with suppress(OhJupyterError):  # Jupyter fails to end a kernel that it is restarting
                await runtime.generation()
            with suppress(OhJupyterError):
                await self._delete(kernel_id)
        finally:
            await runtime.close()

    async def _delete(self, kernel_id: str) -> None:
        where = f"/api/kernels/{quote(kernel_id)}"
        await self._connection.send("DELETE", where, timeout=END_SECONDS)

    async def close(self) -> None:
        """Give the connections back."""
        await self._connection.close()


class AsyncFleetKernels:
    """The kernels of a fleet, to be awaited.

    Attributes:
        size: How many there are.
    """

    def __init__(self, starter: KernelStarter, size: int) -> None:
        self.size = size
        self._starter = starter
        self._members: list[Member | None] = [None] * size
        self._followers: list[Callable[[str], None]] = []
        self._closing = asyncio.Event()

    @property
    def kernel_ids(self) -> list[str]:
        """Ids of the kernels that are there now."""
        return [member.kernel_id for member in self._members if member]

    async def start(self) -> None:
        """Start all kernels; OhJupyterError if one cannot be."""
        starting = [self._member(place) for place in range(self.size)]
        for problem in await asyncio.gather(*starting, return_exceptions=True):
            if isinstance(problem, BaseException):
                raise problem

    async def close(self) -> None:
        """End all kernels, whatever becomes of the caller meanwhile."""
        self._closing.set()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*(self._end(place) for place in range(self.size)))
            await self._starter.close()

    async def map(
        self, function: Callable[[AsyncRuntimeClient, T], Awaitable[R]], items: Iterable[T]
    ) -> list[FleetResult[T, R]]:
        """Have every item done in one of the kernels, as many at a time as there are kernels.

        A kernel that dies, or does not answer, is replaced by a fresh one, and its item begun
        once more. What the function raises is in the result; the other items go on.

        Args:
            function: Is awaited with a client of a kernel, and an item.
            items: The items.

        Returns:
            What became of each, in their order.
        """
        results: list[FleetResult[T, R]] = [FleetResult(item) for item in items]
        left = iter(range(len(results)))

        async def work(place: int) -> None:
            for number in left:
                results[number] = await self._carry_out(place, function, results[number].item)

        workers = [asyncio.ensure_future(work(place)) for place in range(self.size)]
        try:
            await asyncio.gather(*workers)
        finally:
            await _cancelled(*workers)
        return results

    async def _carry_out(
        self, place: int, function: Callable[[AsyncRuntimeClient, T], Awaitable[R]], item: T
    ) -> FleetResult[T, R]:
        result: FleetResult[T, R] = FleetResult(item)
        while result.attempts < MAX_ATTEMPTS:
            value, error, begun = None, None, result.attempts + 1
            try:
                member = await self._member(place)
            except OhJupyterError as problem:
                return FleetResult(item, None, problem, result.attempts, result.kernel_id)
            try:
                value = await function(member.runtime, item)
            except Exception as problem:
                error = problem
            # Asked even where it is known: Jupyter cannot end a kernel that it is restarting.
            if await member.is_the_same() and not isinstance(error, LOST):
                return FleetResult(item, value, error, begun, member.kernel_id)
            lost = error if isinstance(error, LOST) else _lost(member.kernel_id)
            result = FleetResult(item, None, lost, begun, member.kernel_id)
            await self._end(place)
        return result

    async def _member(self, place: int) -> Member:
        """The kernel of a place, which is started if there is none."""
        member = self._members[place]
        if member is None:
            member = self._members[place] = await self._starter.start(place)
            for follow in self._followers:
                follow(member.kernel_id)
        return member

    async def _end(self, place: int) -> None:
        member, self._members[place] = self._members[place], None
        if member is not None:
            await self._starter.end(member.kernel_id, member.runtime)

    async def events(self) -> AsyncGenerator[FleetEvent, None]:
        """Follow the events of all kernels, also of those that are started later, as they come.

        Yields:
            The events, those of one kernel in their order, until the fleet ends.
        """
        found: asyncio.Queue[FleetEvent] = asyncio.Queue(MAX_UNREAD_EVENTS)
        pumps: set[asyncio.Future[None]] = set()

        def follow(kernel_id: str) -> None:
            pumps.add(asyncio.ensure_future(self._pump(kernel_id, found)))

        self._followers.append(follow)
        for kernel_id in self.kernel_ids:
            follow(kernel_id)
        closing = asyncio.ensure_future(self._closing.wait())
        coming = asyncio.ensure_future(found.get())
        try:
            while True:
                pumping = {pump for pump in pumps if not pump.done()}
                if closing.done() and not pumping and not coming.done():
                    return
                ends, limit = (
                    (pumping, LAST_EVENTS_SECONDS) if closing.done() else ({closing}, None)
                )
                done, _ = await asyncio.wait(
                    {coming, *ends}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:  # a stream that a server leaves open says no more
                    return
                if coming.done():
                    yield coming.result()
                    coming = asyncio.ensure_future(found.get())
                    await asyncio.sleep(0)  # so that it is done if there is another one
        finally:
            self._followers.remove(follow)
            await _cancelled(closing, coming, *pumps)

    async def _pump(self, kernel_id: str, sink: asyncio.Queue[FleetEvent]) -> None:
        """Pass on the events of a kernel until it is gone."""
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
        f"Kernel {kernel_id} died or was restarted while it was at work on the item; the state of "
        "its runtime is lost"
    )


class FleetKernels:
    """The kernels of a fleet, for code that waits."""

    def __init__(
        self,
        kernels: AsyncFleetKernels,
        portal: BlockingPortal,
        connect: Callable[[str | None], RuntimeClient],
    ) -> None:
        self._kernels, self._portal, self._connect = kernels, portal, connect

    @property
    def size(self) -> int:
        """How many kernels there are."""
        return self._kernels.size

    @property
    def kernel_ids(self) -> list[str]:
        """Ids of the kernels that are there now."""
        return self._kernels.kernel_ids

    def map(
        self, function: Callable[[RuntimeClient, T], R], items: Iterable[T]
    ) -> list[FleetResult[T, R]]:
        """Have every item done in one of the kernels, see ``AsyncFleetKernels.map``.

        Args:
            function: Is called with a client of a kernel, and an item, in a thread.
            items: The items.

        Returns:
            What became of each, in their order.
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
        """Follow the events of all kernels, see ``AsyncFleetKernels.events``.

        Yields:
            The events.
        """
        events = self._kernels.events()

        async def following() -> FleetEvent | None:
            return await anext(events, None)

        try:
            while (event := wait_in(self._portal, following)) is not None:
                yield event
        finally:
            wait_in(self._portal, events.aclose)


class Fleet:
    """Kernels of a Jupyter server that live as long as a block, and share the items of some work.

    ::

        async with Fleet("http://127.0.0.1:8888", token, 8) as kernels:
            results = await kernels.map(function, items)

    A plain ``with`` gives the same with functions that wait. What is done in these kernels waits
    for a person where the server's ``confirmation`` says so.
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
        """Start nothing yet.

        Args:
            url: The Jupyter server's address, such as ``http://127.0.0.1:8888``.
            token: The server's token.
            size: How many kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Where they start, relative to the server's root.
            name: What it is called in JupyterLab; None for a name that is made up.

        Raises:
            ConfigError: The size is no positive number.
        """
        if size < 1:
            raise ConfigError(f"A fleet has at least one kernel, not {size}")
        self._url, self._token, self._size = url.partition("/oh_jupyter")[0], token, size
        self._kernel, self._path, self._name = kernel, path, name or uuid.uuid4().hex[:4]
        self._kernels: AsyncFleetKernels | None = None
        self._opened = ExitStack()

    async def __aenter__(self) -> AsyncFleetKernels:
        """Start the kernels; OhJupyterError if one of them cannot be."""
        starter = KernelStarter(self._url, self._token, self._name, self._kernel, self._path)
        self._kernels = AsyncFleetKernels(starter, self._size)
        try:
            await self._kernels.start()
        except BaseException:
            await self._kernels.close()
            raise
        return self._kernels

    async def __aexit__(self, *exc_info: object) -> None:
        """End the kernels."""
        if self._kernels is not None:
            await self._kernels.close()

    def __enter__(self) -> FleetKernels:
        """Start the kernels; OhJupyterError if one of them cannot be."""
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal())
            kernels = opened.enter_context(portal.wrap_async_context_manager(self))
            self._opened = opened.pop_all()
        return FleetKernels(kernels, portal, self._client)

    def __exit__(self, *exc_info: object) -> None:
        """End the kernels."""
        self._opened.close()

    def _client(self, kernel_id: str | None) -> RuntimeClient:
        return RuntimeClient(self._url, self._token, kernel_id)
