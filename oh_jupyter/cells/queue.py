"""One cell at a time, for kernels whose interrupt ends whichever cell runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.cells.request import CellRequest


class CellQueue:
    """Queue of cells: one is sent when the one before it has ended.

    A cell whose time is over while it waits is never sent, and no interrupt hits another cell.
    """

    def __init__(self, interrupt: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._interrupt = interrupt
        self._lock = asyncio.Lock()  # held while a cell runs
        self._holder: asyncio.Task[None] | None = None
        self._interrupting: asyncio.Task[Any] | None = None

    async def run(
        self, send: Callable[[], Awaitable[CellRequest]], timeout: float | None
    ) -> CellOutput:
        """Send a cell when it is the first, and wait for its end, ``timeout`` seconds at most."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._lock.acquire()
            except TimeoutError:
                return OutputCollector().result(timed_out=True)
            try:
                request = await send()
            except BaseException:
                self._lock.release()
                raise
            self._holder = run_in_background(self._hold(request))
            left = None if deadline is None else deadline - loop.time()
            timed_out = await request.wait(left, self._give_up)
            if not request.is_to_be_repeated:
                return request.outputs.result(timed_out)

    async def _hold(self, request: CellRequest) -> None:
        """Hold the lock until a cell has ended, and no interrupt of it is on its way."""
        await request.done.wait()
        if self._interrupting is not None:
            await asyncio.wait([self._interrupting])
            self._interrupting = None
        self._lock.release()

    async def _give_up(self, request: CellRequest) -> None:
        if request.done.is_set():
            return
        if request.begun.is_set():
            self._interrupting = run_in_background(self._interrupt())
            await asyncio.shield(self._interrupting)
        else:
            self._interrupting = run_in_background(self._end(request))

    async def _end(self, request: CellRequest) -> None:
        """Interrupt a cell that nobody waits for, once it has begun and until it has ended."""
        await request.begun.wait()
        # What arrives before the kernel has come to the code of the cell may be lost.
        while not request.done.is_set():
            await self._interrupt()
            await request.wait_after_interrupt()

    def close(self) -> None:
        """Forget the cell that runs: the kernel, or the connection to it, is gone."""
        for task in (self._holder, self._interrupting):
            if task is not None:
                task.cancel()
