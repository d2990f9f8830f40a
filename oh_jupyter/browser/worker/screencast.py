"""The active tab as somebody watches it: its picture whenever it changes, a few times a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol

from oh_jupyter.browser.channel.addresses import shortened_url

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

FRAME_INTERVAL_SECONDS = 0.2
"""Time between two pictures of a page that changes all the time."""
STOP_DELAY_SECONDS = 3.0
"""How long pictures are taken after the last watcher has gone."""
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
    """Pictures of the active tab, taken while there are watchers."""

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
        """Let the watchers look which tab is the active one."""
        self._changed.set()

    @property
    def frame(self) -> tuple[int, str]:
        """The last picture: its number, and a JPEG in base64, "" if there is none."""
        return self._number, self._frame.get("data", "")

    async def watch(self, known: int, seconds: float) -> dict[str, Any]:
        """Wait for another picture than the one that is known, and describe what is open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.next_frame(known)
        return await self._describe()

    async def next_frame(self, known: int) -> tuple[int, str]:
        """Wait for another picture than the one that is known."""
        self._watchers += 1
        if self._stop_timer is not None:
            self._stop_timer.cancel()
        try:
            while True:
                self._changed.clear()
                await asyncio.shield(asyncio.ensure_future(self._follow_active_tab()))
                if self._frame and self._number != known:
                    return self.frame
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
                self._page = None  # so that it is tried again
                raise

    async def _start(self, cdp: CDPSession, page: Page) -> None:
        """Have pictures taken, the first one at once.

        While a navigation puts another page in the place of one, the browser refuses.
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
        # What the page shows beyond a few pictures that wait, the browser drops.
        self._missed |= self._unacknowledged > 0
        self._unacknowledged += 1
        is_new = event["data"] != self._frame.get("data")
        self._frame = event
        if is_new:
            self._number += 1
            self._changed.set()
        # The browser takes the next one when this one is acknowledged.
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
        """Show what the page shows now, also if the browser has dropped its picture."""
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
    """Read a title, which a page that hangs does not tell."""
    try:
        return await asyncio.wait_for(page.title(), TITLE_TIMEOUT_SECONDS)
    except Exception:
        return ""
