"""Several kernels that share the items of a task.

Jupyter starts and ends the kernels: one server, on its own machine or through its gateway, or a
server in each worker of an executor.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.client.executor_starter import ExecutorStarter, executor_of
from oh_jupyter.client.http import HttpConnection
from oh_jupyter.client.kernel_starter import KernelStarter, Member
from oh_jupyter.client.sync_client import RuntimeClient
from oh_jupyter.client.thread import wait_in
from oh_jupyter.errors import (
    ConfigError,
    KernelDiedError,
    KernelNotFoundError,
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

HEARTBEAT_SECONDS = 15.0
"""Interval and timeout of requests that show whether a worker is alive during an item."""

logger = logging.getLogger(__name__)


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
class LostKernel:
    """A kernel that died, was restarted or stopped responding during an item.

    Attributes:
        kernel_id: The kernel.
        worker: Host and process id of its worker; "" without an executor.
        error: The error.
        worker_lost: Whether its worker, too, cannot be reached any more.
    """

    kernel_id: str
    worker: str
    error: Exception
    worker_lost: bool = False


class Starter(Protocol):
    """Starts and ends the kernels of a fleet."""

    async def start(self, slot: int) -> Member:
        """Start a kernel with a runtime, or raise OhJupyterError."""

    async def end(self, member: Member) -> None:
        """Shut a kernel down if it still exists."""

    async def close(self) -> None:
        """Release what the kernels shared."""


class AsyncFleetKernels:
    """The kernels of a fleet, with asynchronous methods.

    Attributes:
        size: Number of kernels.
        lost: The kernels that were lost so far, in order; their items were done again.
    """

    def __init__(self, starter: Starter, size: int, attempts: int = MAX_ATTEMPTS) -> None:
        self.size = size
        self.lost: list[LostKernel] = []
        self._attempts = attempts
        self._starter = starter
        self._members: list[Member | None] = [None] * size
        self._followers: list[Callable[[Member], None]] = []
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

        A kernel that dies or stops responding is replaced, and its item is retried, once unless
        the fleet has more ``attempts``. Errors of the function are in the results; the other items
        continue.

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
        while result.attempts < self._attempts:
            value, error, attempts = None, None, result.attempts + 1
            try:
                member = await self._member(slot)
            except OhJupyterError as failure:
                return FleetResult(item, None, failure, result.attempts, result.kernel_id)
            try:
                value = await _while_alive(member, function(member.runtime, item))
            except Exception as failure:
                error = failure
            # Even if the loss is known: Jupyter cannot end a kernel while it restarts it.
            if await member.is_same_runtime() and not member.is_lost(error):
                return FleetResult(item, value, error, attempts, member.kernel_id)
            lost = error if error is not None and member.is_lost(error) else _lost(member.kernel_id)
            result = FleetResult(item, None, lost, attempts, member.kernel_id)
            await self._report(member, lost)
            await self._end(slot)
        return result

    async def _report(self, member: Member, error: Exception) -> None:
        """Record the loss of a kernel."""
        worker_lost = bool(member.worker) and not await _is_reachable(member)
        self.lost.append(LostKernel(member.kernel_id, member.worker, error, worker_lost))
        where = f" on worker {member.worker}" if member.worker else ""
        logger.warning("Kernel %s%s is lost: %s", member.kernel_id, where, error)

    async def _member(self, slot: int) -> Member:
        """Return the kernel of a slot, starting it if necessary."""
        member = self._members[slot]
        if member is None:
            member = self._members[slot] = await self._starter.start(slot)
            for follow in self._followers:
                follow(member)
        return member

    def member(self, kernel_id: str | None) -> Member:
        """Return a current kernel with its server; raise KernelNotFoundError if it is lost."""
        for member in self._members:
            if member is not None and member.kernel_id == kernel_id:
                return member
        raise KernelNotFoundError(f"Kernel {kernel_id} is not in the fleet any more")

    async def _end(self, slot: int) -> None:
        member, self._members[slot] = self._members[slot], None
        if member is not None:
            await self._starter.end(member)

    async def events(self) -> AsyncGenerator[FleetEvent, None]:
        """Yield the events of all kernels, including those that start later.

        Yields:
            The events until the fleet ends, in order for each kernel.
        """
        queue: asyncio.Queue[FleetEvent] = asyncio.Queue(MAX_UNREAD_EVENTS)
        pumps: set[asyncio.Future[None]] = set()

        def follow(member: Member) -> None:
            pumps.add(asyncio.ensure_future(self._pump(member, queue)))

        self._followers.append(follow)
        for member in filter(None, self._members):
            follow(member)
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

    async def _pump(self, member: Member, sink: asyncio.Queue[FleetEvent]) -> None:
        """Forward the events of a kernel until it is gone."""
        async with AsyncRuntimeClient(member.url, member.token, member.kernel_id) as runtime:
            with suppress(OhJupyterError):
                async with aclosing(runtime.events()) as events:
                    async for event in events:
                        await sink.put(FleetEvent(member.kernel_id, event))


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _while_alive(member: Member, call: Awaitable[R]) -> R:
    """Return the result of a call, unless the worker stops responding: a lost machine is silent."""
    if not member.worker:
        return await call
    calling = asyncio.ensure_future(call)
    try:
        while not (await asyncio.wait({calling}, timeout=HEARTBEAT_SECONDS))[0]:
            if not await _is_reachable(member):
                raise ServerError(f"The worker {member.worker} does not respond any more")
        return calling.result()
    finally:
        await _cancelled(calling)


async def _is_reachable(member: Member) -> bool:
    connection = HttpConnection(member.url, member.token, None, None, HEARTBEAT_SECONDS)
    try:
        await connection.send("GET", "/api/status", timeout=HEARTBEAT_SECONDS)
    except OhJupyterError:
        return False
    finally:
        await connection.close()
    return True


def _lost(kernel_id: str) -> KernelDiedError:
    return KernelDiedError(
        f"Kernel {kernel_id} died or was restarted while it processed the item; the state of its "
        "runtime is lost"
    )


class FleetKernels:
    """The kernels of a fleet, with blocking methods."""

    def __init__(self, kernels: AsyncFleetKernels, portal: BlockingPortal) -> None:
        self._kernels, self._portal = kernels, portal

    @property
    def size(self) -> int:
        """Number of kernels."""
        return self._kernels.size

    @property
    def kernel_ids(self) -> list[str]:
        """Ids of the current kernels."""
        return self._kernels.kernel_ids

    @property
    def lost(self) -> list[LostKernel]:
        """The kernels that were lost so far, see ``AsyncFleetKernels``."""
        return self._kernels.lost

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
            member = self._kernels.member(kernel_id)
            with RuntimeClient(member.url, member.token, member.kernel_id) as runtime:
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
    """Kernels that live as long as a block, and share the items of a task.

    ::

        async with Fleet("http://127.0.0.1:8888", token, 8) as kernels:
            results = await kernels.map(function, items)

    A plain ``with`` gives the same with blocking functions. With ``executor=`` the kernels are on
    its workers, so on several machines. Actions in these kernels wait for a person according to
    the server's ``confirmation``.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        size: int = 2,
        *,
        kernel: str | None = None,
        path: str | None = None,
        name: str | None = None,
        executor: Any = None,
        environment: Mapping[str, str] | None = None,
        attempts: int = MAX_ATTEMPTS,
    ) -> None:
        """Describe the fleet; entering the block starts it.

        Args:
            url: The Jupyter server's address, such as ``http://127.0.0.1:8888``.
            token: The server's token.
            size: Number of kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Directory where they start, relative to the server's root; with an executor a
                directory of the workers, by default a temporary one of each.
            name: Name in JupyterLab; None for a random one.
            executor: Executor of ``concurrent.futures``, or client of dask.distributed, instead of
                a server. Each of its workers runs a server, which this process must reach.
            environment: Variables of the servers on workers, such as those of a shared store.
            attempts: Attempts for an item whose kernel or worker is lost.

        Raises:
            ConfigError: The size is not positive, or there is not one of ``url`` and ``executor``.
        """
        if size < 1:
            raise ConfigError(f"A fleet needs at least one kernel, not {size}")
        if attempts < 1:
            raise ConfigError(f"A fleet needs at least one attempt, not {attempts}")
        if bool(url) == (executor is not None):
            raise ConfigError("A fleet is on a server or on an executor: give url or executor")
        if environment and executor is None:
            raise ConfigError("environment is for workers of an executor")
        self._size, self._attempts, self._kernel, self._path = size, attempts, kernel, path
        self._name, self._environment = name or uuid.uuid4().hex[:4], environment or {}
        self._executor = None if executor is None else executor_of(executor)
        self._url, self._token = url.partition("/oh_jupyter")[0], token
        self._kernels: AsyncFleetKernels | None = None
        self._opened = ExitStack()

    def _starter(self) -> Starter:
        if self._executor is None:
            return KernelStarter(self._url, self._token, self._name, self._kernel, self._path)
        return ExecutorStarter(
            self._executor, self._name, self._kernel, self._path, self._environment
        )

    async def __aenter__(self) -> AsyncFleetKernels:
        """Start the kernels, or raise OhJupyterError."""
        self._kernels = AsyncFleetKernels(self._starter(), self._size, self._attempts)
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
        return FleetKernels(kernels, portal)

    def __exit__(self, *exc_info: object) -> None:
        """Shut the kernels down."""
        self._opened.close()
