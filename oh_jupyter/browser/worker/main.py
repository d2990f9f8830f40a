"""The worker process: a browser behind a pipe.

One step runs at a time; the worker handles pings and cancellations meanwhile. The end of the
input means that the parent is gone: the worker closes the browser and exits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from oh_jupyter.browser.channel.pipe import WorkerEnd, run_worker
from oh_jupyter.browser.worker.launch import limit_driver_memory
from oh_jupyter.browser.worker.operations import (
    act,
    bid_of,
    evaluate,
    load,
    marks,
    pick,
    renew,
    reopen,
    run_step,
    start_trace,
    stop_trace,
    storage_state,
    tabs,
    watch,
)
from oh_jupyter.browser.worker.session import BrowserSession
from oh_jupyter.errors import BrowserError

PING_TIMEOUT_SECONDS = 10.0

Operation = Callable[[BrowserSession, dict[str, Any]], Awaitable[Any]]
OPERATIONS: dict[str, Operation] = {
    "step": run_step,
    "act": act,
    "marks": marks,
    "bid_of": bid_of,
    "evaluate": evaluate,
    "load": load,
    "renew": renew,
    "storage_state": storage_state,
    "tabs": tabs,
    "reopen": reopen,
    "start_trace": start_trace,
    "stop_trace": stop_trace,
}
"""Operations that run one at a time, by their name in a request."""
ASIDE: dict[str, Operation] = {"watch": watch, "pick": pick}
"""Operations that run at any time, concurrently with the others."""


class RequestDispatcher:
    """Dispatcher that runs requests as tasks: pings at once, operations one after the other."""

    def __init__(self, session: BrowserSession, parent: WorkerEnd, ended: asyncio.Event) -> None:
        self._session = session
        self._parent = parent
        self._ended = ended
        self._operation_lock = asyncio.Lock()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def dispatch(self, request: dict[str, Any]) -> None:
        """Start a request, or cancel the request that it names."""
        operation, number = request["op"], request["id"]
        if operation == "cancel":
            task = self._tasks.get(request["step"])
            if task is not None:
                task.cancel()
            return
        work = self._ping(number) if operation == "ping" else self._operate(number, request)
        task = asyncio.ensure_future(work)
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _ping(self, number: int) -> None:
        # Ping the browser itself: a running worker with a dead browser is useless.
        await self._session.opened.ping()
        self._parent.answer(number, True)

    async def _is_alive(self) -> bool:
        if self._ended.is_set():
            return False
        try:
            await asyncio.wait_for(self._session.opened.ping(), PING_TIMEOUT_SECONDS)
        except Exception:  # the driver or the browser is gone or hangs
            return False
        return True

    async def _operate(self, number: int, request: dict[str, Any]) -> None:
        if request["op"] in ASIDE:
            await self._answer(number, request)
            return
        async with self._operation_lock:
            await self._answer(number, request)
            # Hold the lock: a page that collects garbage responds slowly to actions.
            await self._session.release_resources()

    async def _answer(self, number: int, request: dict[str, Any]) -> None:
        try:
            operation = OPERATIONS.get(request["op"]) or ASIDE[request["op"]]
            result = await operation(self._session, request)
        except Exception as error:
            if isinstance(error, BrowserError) or await self._is_alive():
                self._parent.fail(number, error)
            else:
                # Without a response, the parent assumes that the action may be done, and recovers.
                self._ended.set()
            return
        # The result of a page's script may contain infinities and NaN.
        self._parent.answer(number, result, is_finite=request["op"] == "step")


async def _serve(parent: WorkerEnd) -> int:
    loop = asyncio.get_running_loop()
    settings = parent.read_settings()
    if settings is None:
        return 0
    try:
        session = await BrowserSession.start(settings)
    except Exception as error:
        # After a BrowserError, which means invalid settings, a retry is useless.
        parent.refused(str(error), is_final=isinstance(error, BrowserError))
        return 1
    ended = asyncio.Event()
    await session.opened.when_gone(ended.set)
    dispatcher = RequestDispatcher(session, parent, ended)

    def receive(request: dict[str, Any] | None) -> None:
        if request is None:
            loop.call_soon_threadsafe(ended.set)
        else:
            loop.call_soon_threadsafe(dispatcher.dispatch, request)

    parent.listen(receive)
    parent.started()
    await ended.wait()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(session.close(), settings.close_seconds)
    return 0


def main() -> None:
    """Run the worker until its input ends or its browser does."""
    limit_driver_memory()
    run_worker(lambda parent: asyncio.run(_serve(parent)))


if __name__ == "__main__":
    main()
