"""Live frames of the active tab for watchers, a few times a second while it changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol

from oh_jupyter.browser.channel.addresses import shortened_url

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

FRAME_INTERVAL_SECONDS = 0.2
"""Interval between two frames of a page that changes continuously."""
STOP_DELAY_SECONDS = 3.0
"""Delay before the screencast stops after the last watcher leaves."""
TITLE_TIMEOUT_SECONDS = 1.0


class WatchedTabs(Protocol):
    """Tabs of a browser, one of which is active."""

    @property
    def active_page(self) -> Page | None:
        """The active tab, if there is one."""

    @property
    def tabs(self) -> list[Page]:
        """All tabs, in the order in which they were opened."""

    def run_aside(self, work: Awaitable[Any]) -> None:
        """Run something in the background and ignore its failure."""


class Screencast:
    """Frames of the active tab, captured while there are watchers."""

    def __init__(self, session: WatchedTabs) -> None:
        self._session = session
        self._page: Page | None = None
        self._cdp: CDPSession | None = None
        self._frame: dict[str, Any] = {}
        self._number = 0
        self._unacknowledged = 0
        self._missed = False
        self._changed = asyncio.Event()
        self._starting = asyncio.Lock()
        self._watchers = 0
        self._stop_timer: asyncio.TimerHandle | None = None

    def tabs_changed(self) -> None:
        """Notify the watchers that the active tab may have changed."""
        self._changed.set()

    async def watch(self, known: int, seconds: float) -> dict[str, Any]:
        """Wait for a frame other than ``known``, then return it with the open tabs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wait_for_frame(known)
        return await self._describe()

    async def _wait_for_frame(self, known: int) -> None:
        self._watchers += 1
        if self._stop_timer is not None:
            self._stop_timer.cancel()
        try:
            while True:
                self._changed.clear()
                await asyncio.shield(asyncio.ensure_future(self._follow_active_tab()))
                if self._frame and self._number != known:
                    return
                await self._changed.wait()
        finally:
            self._watchers -= 1
            if not self._watchers:
                loop = asyncio.get_running_loop()
                self._stop_timer = loop.call_later(STOP_DELAY_SECONDS, self._stop_later)

    async def _follow_active_tab(self) -> None:
        async with self._starting:
            page = self._session.active_page
            if page is self._page or page is None:
                return
            await self._stop()
            cdp = await page.context.new_cdp_session(page)
            cdp.on("Page.screencastFrame", lambda event: self._frame_taken(cdp, event))
            self._page, self._cdp = page, cdp
            self._unacknowledged, self._missed = 0, False
            try:
                await self._start(cdp, page)
            except Exception:
                self._page = None  # so that the next call retries
                raise

    async def _start(self, cdp: CDPSession, page: Page) -> None:
        """Start the browser's screencast, which sends its first frame at once.

        The browser rejects this while a navigation replaces the page, so retry until it succeeds.
        """
        while True:
            try:
                await cdp.send("Page.startScreencast", {"format": "jpeg", "quality": 75})
                return
            except Exception:
                if cdp is not self._cdp or page is not self._session.active_page:
                    raise
            await asyncio.sleep(FRAME_INTERVAL_SECONDS)

    def _frame_taken(self, cdp: CDPSession, event: dict[str, Any]) -> None:
        if cdp is not self._cdp:
            return
        # The browser drops frames while a few others wait for acknowledgement.
        self._missed |= self._unacknowledged > 0
        self._unacknowledged += 1
        is_new = event["data"] != self._frame.get("data")
        self._frame = event
        if is_new:
            self._number += 1
            self._changed.set()
        # The browser captures the next frame after this acknowledgement.
        loop = asyncio.get_running_loop()
        loop.call_later(FRAME_INTERVAL_SECONDS, self._acknowledge_later, cdp, event["sessionId"])

    def _acknowledge_later(self, cdp: CDPSession, frame: int) -> None:
        self._session.run_aside(self._acknowledge(cdp, frame))

    async def _acknowledge(self, cdp: CDPSession, frame: int) -> None:
        await cdp.send("Page.screencastFrameAck", {"sessionId": frame})
        if cdp is not self._cdp:
            return
        self._unacknowledged -= 1
        if self._missed and not self._unacknowledged:
            self._missed = False
            await self._restart(cdp)

    async def _restart(self, cdp: CDPSession) -> None:
        """Restart the screencast to get the current frame, which the browser may have dropped."""
        async with self._starting:
            if cdp is self._cdp and self._page is not None:
                await cdp.send("Page.stopScreencast")
                await self._start(cdp, self._page)

    def _stop_later(self) -> None:
        self._session.run_aside(self._stop())

    async def _stop(self) -> None:
        cdp, self._cdp, self._page, self._frame = self._cdp, None, None, {}
        if cdp is not None:
            with contextlib.suppress(Exception):
                await cdp.send("Page.stopScreencast")
                await cdp.detach()

    async def _describe(self) -> dict[str, Any]:
        tabs = self._session.tabs
        titles = await asyncio.gather(*map(_title, tabs))
        active = self._session.active_page
        size = self._frame.get("metadata", {})
        return {
            "number": self._number,
            "frame": self._frame.get("data", ""),
            "width": size.get("deviceWidth", 0),
            "height": size.get("deviceHeight", 0),
            "scroll": [size.get("scrollOffsetX", 0), size.get("scrollOffsetY", 0)],
            "url": shortened_url(active.url) if active is not None else "",
            "tabs": [
                {"title": title or shortened_url(page.url), "active": page is active}
                for page, title in zip(tabs, titles, strict=True)
            ],
        }


async def _title(page: Page) -> str:
    """Return the title of a page, or "" if the page does not respond."""
    try:
        return await asyncio.wait_for(page.title(), TITLE_TIMEOUT_SECONDS)
    except Exception:
        return ""
