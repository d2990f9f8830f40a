"""Detection of hung pages by the processor time that their renderers use.

This tells a page that hangs from one that only waits for a processor.
"""

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
"""Processor time of a renderer without a response, after which its page counts as hung."""
HUNG_IDLE_SECONDS = 10.0
"""Seconds without computation or a response, after which an idle page counts as hung."""
MEASURE_INTERVAL_SECONDS = 0.25
COMPUTING_SHARE = 0.2
"""Share of a processor in one interval above which a renderer counts as computing."""


class Patience:
    """Measurement of a wait: the most processor time of one renderer, and the idle time."""

    def __init__(self, max_computing: float) -> None:
        self.cpu = 0.0
        self._max_computing = max_computing
        self._start = time.monotonic()
        self._computing = 0.0
        self._used: dict[int, float] = {}

    @property
    def idle(self) -> float:
        """Seconds in which no renderer computed or waited for a processor."""
        return time.monotonic() - self._start - min(self._computing, self._max_computing)

    @property
    def is_over(self) -> bool:
        """Whether the page counts as hung; a renderer that is runnable now has not idled.

        On a busy machine, the last interval may be long ago.
        """
        if self.cpu >= HUNG_CPU_SECONDS:
            return True
        is_idle = self.idle >= HUNG_IDLE_SECONDS
        return is_idle and not any(_waits_for_processor(pid) for pid in self._used)

    def note(self, seconds: float, cpu_by_pid: dict[int, float]) -> None:
        """Add an interval with the processor time of each renderer, by process id."""
        for pid, cpu in cpu_by_pid.items():
            self._used[pid] = self._used.get(pid, 0.0) + cpu
        self.cpu = max(self._used.values(), default=0.0)
        is_used = any(cpu >= seconds * COMPUTING_SHARE for cpu in cpu_by_pid.values())
        if is_used or any(_waits_for_processor(pid) for pid in cpu_by_pid):
            self._computing += seconds


class Watchdog:
    """Watchdog that checks whether pages still respond."""

    def __init__(self, browser: Browser | None) -> None:
        self._browser = browser
        self._session: CDPSession | None = None

    async def responds(self, request: Awaitable[Any]) -> bool:
        """Wait for a response or an error; return False once the page counts as hung."""
        task = asyncio.ensure_future(request)
        try:
            async with self.patience() as patience:
                while not (await asyncio.wait([task], timeout=MEASURE_INTERVAL_SECONDS))[0]:
                    if patience.is_over:
                        return task.done()
        finally:
            if not task.done():
                task.cancel()
            elif not task.cancelled():
                task.exception()
        return True

    @contextlib.asynccontextmanager
    async def patience(self, max_computing: float = math.inf) -> AsyncIterator[Patience]:
        """Measure renderers within the block; at most ``max_computing`` seconds do not count."""
        patience = Patience(max_computing)
        measuring = asyncio.ensure_future(self._measure(patience))
        try:
            yield patience
        finally:
            measuring.cancel()

    async def _measure(self, patience: Patience) -> None:
        at, before = time.monotonic(), await self.cpu_seconds()
        patience.note(0.0, dict.fromkeys(before, 0.0))
        while True:
            await asyncio.sleep(MEASURE_INTERVAL_SECONDS)
            now, used = time.monotonic(), await self.cpu_seconds()
            # A process counts from its second sample: its start time is unknown.
            gained = {pid: cpu - before.get(pid, cpu) for pid, cpu in used.items()}
            patience.note(now - at, gained)
            at, before = now, used

    async def cpu_seconds(self) -> dict[int, float]:
        """Return the processor time of each renderer by process id, if the browser reports it."""
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
    """Return whether a renderer's main thread is runnable, as far as the system reports it."""
    if sys.platform != "linux":
        return False
    import psutil

    with contextlib.suppress(psutil.Error):
        # A browser on another machine reports pids that may belong to other processes here.
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_RUNNING and "--type=renderer" in process.cmdline()
    return False
