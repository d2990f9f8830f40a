"""Whether a page hangs or only has no processor: what its processes use tells them apart."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

HUNG_CPU_SECONDS = 6.0
"""Processor time that a renderer uses without answering until its page counts as hung."""
HUNG_IDLE_SECONDS = 10.0
"""The same for pages that wait for something, in seconds in which no renderer computes."""
MEASURE_INTERVAL_SECONDS = 0.25
COMPUTING_SHARE = 0.2
"""Share of an interval that a renderer has to use of a processor to count as computing."""


class Patience:
    """Measures a wait: the processor time that a renderer used in it, and the time without any."""

    def __init__(self, most_spared: float) -> None:
        self.cpu = 0.0
        self._most_spared = most_spared
        self._start = time.monotonic()
        self._computing = 0.0
        self._used: dict[int, float] = {}

    @property
    def idle(self) -> float:
        """Seconds in which no renderer computed, nor waited for a processor to do so."""
        return time.monotonic() - self._start - min(self._computing, self._most_spared)

    def note(self, seconds: float, gained: dict[int, float]) -> None:
        """Take in what renderers, by process id, used of an interval."""
        for pid, cpu in gained.items():
            self._used[pid] = self._used.get(pid, 0.0) + cpu
        self.cpu = max(self._used.values(), default=0.0)
        is_used = any(cpu >= seconds * COMPUTING_SHARE for cpu in gained.values())
        if is_used or any(_waits_for_processor(pid) for pid in gained):
            self._computing += seconds


class Watchdog:
    """Asks pages for a sign of life."""

    def __init__(self, browser: Browser | None) -> None:
        self._browser = browser
        self._session: CDPSession | None = None

    async def answers(self, question: Awaitable[Any]) -> bool:
        """Wait for an answer, which an error is as well; False once the page counts as hung."""
        task = asyncio.ensure_future(question)
        try:
            async with self.patience() as patience:
                while not (await asyncio.wait([task], timeout=MEASURE_INTERVAL_SECONDS))[0]:
                    if patience.cpu >= HUNG_CPU_SECONDS or patience.idle >= HUNG_IDLE_SECONDS:
                        return task.done()
        finally:
            if not task.done():
                task.cancel()
            elif not task.cancelled():
                task.exception()
        return True

    @contextlib.asynccontextmanager
    async def patience(self, most_spared: float = math.inf) -> AsyncIterator[Patience]:
        """Measure what renderers use within the block, and spare so many seconds of computing."""
        patience = Patience(most_spared)
        measuring = asyncio.ensure_future(self._measure(patience))
        try:
            yield patience
        finally:
            measuring.cancel()

    async def _measure(self, patience: Patience) -> None:
        at, before = time.monotonic(), await self.cpu_seconds()
        while True:
            await asyncio.sleep(MEASURE_INTERVAL_SECONDS)
            now, used = time.monotonic(), await self.cpu_seconds()
            # Of a process that is new to us, how long it has lived is not known.
            gained = {pid: cpu - before.get(pid, cpu) for pid, cpu in used.items()}
            patience.note(now - at, gained)
            at, before = now, used

    async def cpu_seconds(self) -> dict[int, float]:
        """Processor time of each renderer by process id; empty where the browser does not tell."""
        with contextlib.suppress(Exception):
            if self._browser is not None and self._session is None:
                self._session = await self._browser.new_browser_cdp_session()
            if self._session is not None:
                info = await self._session.send("SystemInfo.getProcessInfo")
                return {
                    each["id"]: each["cpuTime"]
                    for each in info["processInfo"]
                    if each["type"] == "renderer"
                }
        return {}


def _waits_for_processor(pid: int) -> bool:
    """Tell whether the main thread of a process would compute if it could, as far as is known."""
    if sys.platform != "linux":
        return False
    import psutil

    with contextlib.suppress(psutil.Error):
        # Of a process elsewhere, whose browser was connected to, this is another one's state.
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_RUNNING and "--type=renderer" in process.cmdline()
    return False
