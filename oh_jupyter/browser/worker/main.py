"""The worker process: a browser behind a pipe.

Reads requests from standard input and writes answers to standard output, as frames of
``pipe``. One step runs at a time; pings and cancellations are answered meanwhile. The end of
the input means that the parent is gone: the browser is closed and the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from oh_jupyter.browser.channel.pipe import read_frame, write_frame
from oh_jupyter.browser.worker.cleanup import bound_driver, tidy
from oh_jupyter.browser.worker.launch import Settings
from oh_jupyter.browser.worker.session import BrowserSession
from oh_jupyter.browser.worker.steps import run_step
from oh_jupyter.browser.worker.upkeep import (
    evaluate,
    load,
    renew,
    start_trace,
    stop_trace,
    storage_state,
)
from oh_jupyter.errors import BrowserError

__all__ = ["main"]

CLOSING = 5.0
"""Seconds that the browser has for closing."""

Operation = Callable[[BrowserSession, dict[str, Any]], Awaitable[Any]]
OPERATIONS: dict[str, Operation] = {
    "step": run_step,
    "evaluate": evaluate,
    "load": load,
    "renew": renew,
    "storage_state": storage_state,
    "start_trace": start_trace,
    "stop_trace": stop_trace,
}
"""What can be asked for, one at a time, by its name in a request."""


class Worker:
    """Answers requests, one step at a time.

    Attributes:
        session: The browser.
    """

    def __init__(self, session: BrowserSession, output: int) -> None:
        self.session = session
        self._output = output
        self._turn = asyncio.Lock()
        self._steps: dict[int, asyncio.Task[None]] = {}

    def take(self, request: dict[str, Any]) -> None:
        """Begin to answer a request.

        Args:
            request: ``op`` and ``id``, and what the operation needs.
        """
        operation, number = request["op"], request["id"]
        if operation == "cancel":
            task = self._steps.get(request["step"])
            if task is not None:
                task.cancel()
            return
        work = self._ping(number) if operation == "ping" else self._operate(number, request)
        task = asyncio.ensure_future(work)
        self._steps[number] = task
        task.add_done_callback(lambda _: self._steps.pop(number, None))

    async def _ping(self, number: int) -> None:
        # Asks the browser itself: a worker that lives with a dead browser is of no use.
        await self.session.opened.ping()
        write_frame(self._output, {"id": number, "result": True})

    async def _operate(self, number: int, request: dict[str, Any]) -> None:
        async with self._turn:
            await self._answer(number, request)
            # Within the turn: a page that is collecting its garbage is slow to act on.
            await tidy(self.session)

    async def _answer(self, number: int, request: dict[str, Any]) -> None:
        try:
            result = await OPERATIONS[request["op"]](self.session, request)
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            kind = "" if isinstance(error, BrowserError) else f"{type(error).__name__}: "
            write_frame(self._output, {"id": number, "error": f"{kind}{first}"})
            return
        # What a page's own script answers may hold any number.
        is_finite = request["op"] == "step"
        write_frame(self._output, {"id": number, "result": result}, is_finite=is_finite)


async def _serve(input_: int, output: int) -> int:
    loop = asyncio.get_running_loop()
    first = read_frame(input_)
    if first is None:
        return 0
    try:
        session = await BrowserSession.start(Settings(**first["settings"]))
    except Exception as error:
        # What was asked for is wrong, so that another attempt would be of no use.
        final = isinstance(error, BrowserError)
        write_frame(output, {"id": first["id"], "error": str(error), "is_final": final})
        return 1
    ended = asyncio.Event()
    session.opened.when_gone(ended.set)
    worker = Worker(session, output)

    def listen() -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while (request := read_frame(input_)) is not None:
                loop.call_soon_threadsafe(worker.take, request)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=listen, daemon=True).start()
    write_frame(output, {"id": first["id"], "result": True})
    await ended.wait()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(session.close(), CLOSING)
    return 0


def main() -> None:
    """Run the worker until its input ends or its browser does."""
    # Whatever a library prints must not get between the frames.
    output = os.dup(1)
    os.dup2(2, 1)
    bound_driver()
    code = 1
    try:
        code = asyncio.run(_serve(0, output))
    finally:
        sys.stderr.flush()
        # The listening thread may be in a blocking read, which nothing would end.
        os._exit(code)


if __name__ == "__main__":
    main()
