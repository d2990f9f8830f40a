"""Tells a hung page from a slow machine: by the processor time that pages use without answering."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

__all__ = ["Watchdog"]

HUNG_CPU_SECONDS = 3.0
"""Processor time that a renderer uses without answering until its page counts as hung."""
HUNG_WALL_SECONDS = 10.0
"""The same for pages that wait for something, and so use no processor time."""
MEASURE_INTERVAL_SECONDS = 0.5


class Watchdog:
    """Asks pages for a sign of life."""

    def __init__(self, browser: Browser | None) -> None:
        self._browser = browser
        self._session: CDPSession | None = None

    async def answers(self, question: Awaitable[Any]) -> bool:
        """Wait for an answer, which an error is as well; False once the page counts as hung."""
        start, before = time.monotonic(), await self._cpu_seconds()
        task = asyncio.ensure_future(question)
        try:
            while not (await asyncio.wait([task], timeout=MEASURE_INTERVAL_SECONDS))[0]:
                waited, now = time.monotonic() - start, await self._cpu_seconds()
                used = max((now[pid] - before.get(pid, 0.0) for pid in now), default=waited)
                if used >= HUNG_CPU_SECONDS or waited >= HUNG_WALL_SECONDS:
                    return task.done()
        finally:
            if not task.done():
                task.cancel()
            elif not task.cancelled():
                task.exception()
        return True

    async def _cpu_seconds(self) -> dict[int, float]:
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
