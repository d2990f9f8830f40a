"""One cell at a time, for kernels whose interrupt stops whatever cell is running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.request import NEVER_BEGAN, CellRequest


class CellQueue:
    """Queue of cells: each is sent when the previous one has ended.

    A cell that times out in the queue is never sent, and no interrupt hits another cell.
    """

    def __init__(self, interrupt: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._interrupt = interrupt
        self._lock = asyncio.Lock()  # held while a cell runs
        self._holder: asyncio.Task[None] | None = None
        self._interrupting: asyncio.Task[Any] | None = None

    async def run(
        self, send: Callable[[], Awaitable[CellRequest]], timeout: float | None
    ) -> CellOutput:
        """Send a cell when it is its turn, and wait for its end, at most ``timeout`` seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._lock.acquire()
            except TimeoutError:
                return CellOutput(timed_out=True, note=NEVER_BEGAN)
            try:
                request = await send()
            except BaseException:
                self._lock.release()
                raise
            self._holder = run_in_background(self._hold(request))
            remaining = None if deadline is None else deadline - loop.time()
            timed_out = await request.wait(remaining, self._cancel)
            if not request.needs_retry:
                output = request.outputs.result(timed_out)
                return replace(output, note=request.note) if timed_out else output

    async def _hold(self, request: CellRequest) -> None:
        """Hold the lock until a cell and any interrupt of it have ended."""
        await request.done.wait()
        if self._interrupting is not None:
            await asyncio.wait([self._interrupting])
            self._interrupting = None
        self._lock.release()

    async def _cancel(self, request: CellRequest) -> None:
        if request.done.is_set():
            return
        if request.started.is_set():
            self._interrupting = run_in_background(self._interrupt())
            await asyncio.shield(self._interrupting)
        else:
            self._interrupting = run_in_background(self._interrupt_later(request))

    async def _interrupt_later(self, request: CellRequest) -> None:
        """Interrupt a cancelled cell after its start, until it has ended."""
        await request.started.wait()
        # An interrupt before the kernel runs the code may be lost.
        while not request.done.is_set():
            await self._interrupt()
            await request.wait_after_interrupt()

    def close(self) -> None:
        """Drop the running cell: the kernel, or the connection to it, is gone."""
        for task in (self._holder, self._interrupting):
            if task is not None:
                task.cancel()
