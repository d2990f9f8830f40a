"""One cell at a time, for kernels whose interrupt ends whichever cell runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from oh_jupyter.background import run_in_background
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.cells.request import CellRequest


class CellTurns:
    """Turns of cells: one is sent when the one before it has ended.

    A cell whose time is over while it waits is never sent, and no interrupt hits another cell.
    """

    def __init__(self, interrupt: Callable[[], Awaitable[object]]) -> None:
        self._interrupt = interrupt
        self._turn = asyncio.Lock()
        self._holder: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def run(
        self, send: Callable[[], Awaitable[CellRequest]], timeout: float | None
    ) -> CellOutput:
        """Have a cell sent when it is its turn, and wait for its end; ``timeout`` is in seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._turn.acquire()
            except TimeoutError:
                return OutputCollector().result(timed_out=True)
            try:
                request = await send()
            except BaseException:
                self._turn.release()
                raise
            self._holder = run_in_background(self._hold(request))
            left = None if deadline is None else deadline - loop.time()
            timed_out = await request.wait(left, self._give_up)
            # A failing cell of somebody else's aborts what waits behind it: that was not meant.
            if request.status != "aborted" or timed_out:
                return request.outputs.result(timed_out)

    async def _hold(self, request: CellRequest) -> None:
        """Hold the turn until a cell has ended, and no interrupt of it is on its way."""
        await request.done.wait()
        if self._ending is not None:
            await asyncio.wait([self._ending])
            self._ending = None
        self._turn.release()

    async def _give_up(self, request: CellRequest) -> None:
        if request.done.is_set():
            return
        if request.begun.is_set():
            await self._interrupt()
        else:
            self._ending = run_in_background(self._end(request))

    async def _end(self, request: CellRequest) -> None:
        """Interrupt a cell that nobody waits for, once it has begun and until it has ended."""
        await request.begun.wait()
        # What arrives before the kernel has come to the code of the cell may be lost.
        while not request.done.is_set():
            await self._interrupt()
            await request.wait_after_interrupt()

    def close(self) -> None:
        """Forget the cell whose turn it is: the kernel, or the connection to it, is gone."""
        for task in (self._holder, self._ending):
            if task is not None:
                task.cancel()
