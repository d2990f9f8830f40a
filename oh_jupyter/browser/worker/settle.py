"""Bounded, event-driven waits for the effects of an action, never for a fixed time.

A step waits for a navigation until its page arrives, for requests that the action started, and
for short timers, a drawn frame and a moment without changes (``activity.js``). It does not wait
for polling loops, streams, media, or activity from before the action.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from oh_jupyter.browser.worker.long_text import LONG_TEXT_CHARS
from oh_jupyter.browser.worker.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request

ACTIVITY = files("oh_jupyter.browser.worker").joinpath("activity.js").read_text("utf-8")

SETTLE = """([secret, options]) => {
  const request = { secret };
  try {
    Function.prototype.toString.call(request);
  } catch {}
  return request.settle && request.settle(options);
}"""
REQUEST_TIMEOUT_SECONDS = 2.5
"""Seconds after the action to wait for requests."""
NAVIGATION_TIMEOUT_SECONDS = 10.0
"""Seconds after the action to wait for a new page."""
LOAD_STATES: tuple[tuple[Literal["domcontentloaded", "load"], float], ...] = (
    ("domcontentloaded", NAVIGATION_TIMEOUT_SECONDS),
    ("load", REQUEST_TIMEOUT_SECONDS),
)
"""Load states to wait for before an observation, with their timeouts from the action; parsing a
page without requests takes as long as the machine needs."""
MAX_COMPUTING_SECONDS = 20.0
"""Seconds by which these timeouts grow, at most, while the page computes."""
QUIET_TIMEOUT_MS = 600
"""Timeout in milliseconds of one wait for timers and changes."""
FRAME_TIMEOUT_SECONDS = 0.7
"""Extra seconds for the frames of a page after the page itself is quiet."""
UNRESPONSIVE_SECONDS = 2.0
"""Seconds without a response before the tracker checks whether a page hangs."""
IGNORED_RESOURCE_TYPES = frozenset(
    {"eventsource", "manifest", "media", "ping", "texttrack", "websocket"}
)
CLOSE_TIMEOUT_MS = 2_000
"""Timeout in milliseconds for a page that closes itself."""
POLLING_ROUNDS, POLLING_WINDOW_SECONDS, POLLING_ROUND_GAP_SECONDS = 5, 5.0, 0.1
"""An address requested in this many rounds within this many seconds is a polling loop; requests
less than the gap apart form one round."""
MAX_VISITS = 15
"""Navigations of a tab in one step, above which they count as a loop."""
MIN_LOOP_VISITS = 5
"""Navigations that count as a loop if the tab has shown no page by the timeout."""
MAX_ADDRESSES = 1000
"""Addresses remembered to detect such loops; a loop soon requests its addresses again."""


class NavigationLoopError(Exception):
    """A tab keeps navigating to another page."""


class PageUnresponsiveError(Exception):
    """A page does not respond because one of its scripts does not end."""


class ActivityTracker:
    """Tracker of pending requests, navigations and new windows in a browser context."""

    def __init__(self, context: BrowserContext, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._secret = f"_{secrets.token_hex(12)}"
        self._pending: dict[Request, float] = {}
        self._navigations: set[Request] = set()
        self._rounds: dict[tuple[str, str], list[float]] = {}
        self._changed = asyncio.Event()
        self._windows = 0
        self._last_window = 0.0
        self._downloads = 0
        self._visits: Counter[Page] = Counter()
        self._silent_frames: WeakSet[Frame] = WeakSet()
        self._complete: WeakSet[Page] = WeakSet()
        self._with_long_text: WeakSet[Page] = WeakSet()
        context.on("request", self._started)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)

    @property
    def script(self) -> str:
        """Script to run in every frame before the page's own scripts."""
        return ACTIVITY.replace("SECRET", self._secret)

    def begin(self) -> None:
        """Start a step, which ignores all activity that is pending now."""
        self._pending.clear()
        self._navigations.clear()
        self._visits.clear()
        self._windows = 0
        self._downloads = 0

    def window_opens(self, _event: Any = None) -> None:
        """Note that a page requested a new window, which is still pending."""
        self._windows += 1
        self._last_window = time.monotonic()

    def window_opened(self) -> None:
        """Note that a new window has opened."""
        self._windows = max(0, self._windows - 1)
        self._last_window = time.monotonic()
        self._changed.set()

    def download_begun(self) -> None:
        """Note that a requested download has started."""
        self._downloads -= 1
        self._changed.set()

    def _started(self, request: Request) -> None:
        if request.resource_type in IGNORED_RESOURCE_TYPES:
            return
        if request.is_navigation_request():
            # Polling loops belong to the previous page, or to another frame, where the tracker
            # soon detects them again.
            self._rounds.clear()
            self._navigations.add(request)
            tab = _tab_of(request)
            if tab is not None and request.redirected_from is None:
                self._visits[tab] += 1
            self._pending[request] = REQUEST_TIMEOUT_SECONDS
            self._changed.set()
        elif not self._polls(request):
            self._pending[request] = REQUEST_TIMEOUT_SECONDS

    def _polls(self, request: Request) -> bool:
        """Return whether a request belongs to a polling loop."""
        address = request.method, request.url.partition("?")[0]
        now = time.monotonic()
        rounds = [at for at in self._rounds.get(address, ()) if now - at < POLLING_WINDOW_SECONDS]
        is_loop = len(rounds) >= POLLING_ROUNDS
        if not rounds or now - rounds[-1] > POLLING_ROUND_GAP_SECONDS:
            # A burst is one round: a page may need many responses at once.
            rounds.append(now)
        if len(self._rounds) >= MAX_ADDRESSES and address not in self._rounds:
            self._rounds.clear()
        self._rounds[address] = rounds[-POLLING_ROUNDS:]
        return is_loop

    def _ended(self, request: Request) -> None:
        self._pending.pop(request, None)
        self._navigations.discard(request)
        self._changed.set()

    def _seconds_left(self, patience: Patience) -> float:
        """Return how long to wait for pending activity; each new window extends the wait."""
        timeout = max(self._pending.values(), default=0.0)
        if self._downloads > 0:
            timeout = max(timeout, REQUEST_TIMEOUT_SECONDS)
        remaining = timeout - patience.idle
        if self._windows:
            for_window = self._last_window + REQUEST_TIMEOUT_SECONDS - time.monotonic()
            remaining = max(remaining, for_window)
        return min(remaining, NAVIGATION_TIMEOUT_SECONDS - patience.idle)

    def navigates(self, page: Page) -> bool:
        """Return whether a tab has a pending navigation, whose page has not arrived yet."""
        return any(_tab_of(request) is page for request in self._navigations)

    def _is_loop(self, page: Page) -> bool:
        return self._visits[page] > MAX_VISITS

    def goes_on(self, page: Page) -> bool:
        """Return whether a tab without a page keeps starting new navigations."""
        return self._visits[page] >= MIN_LOOP_VISITS

    def has_long_text(self, page: Page) -> bool:
        """Return whether a page showed a very long text when it last settled."""
        return page in self._with_long_text

    def page_shown(self, frame: Frame) -> None:
        """Note that a frame shows another page; its navigation becomes an ordinary request."""
        if frame.parent_frame is None:
            arrived = [each for each in self._navigations if _tab_of(each) is frame.page]
            self._navigations.difference_update(arrived)
            self._complete.discard(frame.page)
            self._changed.set()

    async def navigated(self, page: Page, deadline: float | None = None) -> None:
        """Wait until a pending navigation shows its page."""
        deadline = deadline or time.monotonic() + NAVIGATION_TIMEOUT_SECONDS
        while self.navigates(page) and not self._is_loop(page):
            if not await self._wait_change(deadline):
                break
        # Use a page that never finishes loading as it is.
        with contextlib.suppress(Exception):
            remaining_ms = max(1.0, (deadline - time.monotonic()) * 1000)
            await page.wait_for_load_state("domcontentloaded", timeout=remaining_ms)

    async def settle(self, page: Page, *, wait: str = "frame") -> bool:
        """Wait for the effects of an action; return False if a navigation gets no response.

        ``wait`` is the minimum when nothing is pending: one "frame", a "turn" of scripts, "none".
        """
        async with self._watchdog.patience(MAX_COMPUTING_SECONDS) as patience:
            return await self._settle(page, wait, patience)

    async def _settle(self, page: Page, wait: str, patience: Patience) -> bool:
        start = time.monotonic()
        while True:
            if self.navigates(page):
                # Until the new page arrives, the browser delays every query to the old one.
                await self.navigated(page, start + NAVIGATION_TIMEOUT_SECONDS)
                if self._is_loop(page) or (self.navigates(page) and self.goes_on(page)):
                    raise NavigationLoopError
                if self.navigates(page):
                    return False
            try:
                await self._loaded(page, patience)
                await self._wait_quiet(page, wait)
            except PageUnresponsiveError:
                if not self.navigates(page):
                    raise
                continue
            wait = "frame"
            while not page.is_closed() and (remaining := self._seconds_left(patience)) > 0:
                if await self._wait_change(time.monotonic() + remaining):
                    break
            else:
                return not self.navigates(page)

    async def _loaded(self, page: Page, patience: Patience) -> None:
        """Wait until the page and its frames are loaded, at most once for each page."""
        # Playwright does not always report that the browser's own error page is loaded.
        if page in self._complete or page.url.startswith("chrome-error:"):
            return
        for state, seconds in LOAD_STATES:
            waiting = asyncio.ensure_future(page.wait_for_load_state(state, timeout=0))
            # This lets the wait finish for a page that is in that state already.
            await asyncio.sleep(0)
            try:
                while not (waiting.done() or page.is_closed() or self.navigates(page)):
                    timeout = REQUEST_TIMEOUT_SECONDS if self._pending else seconds
                    remaining = timeout - patience.idle
                    if remaining <= 0:
                        break
                    is_event = await self._task_or_change(
                        waiting, min(remaining, UNRESPONSIVE_SECONDS)
                    )
                    if not is_event and not await self._responds(page):
                        raise PageUnresponsiveError
            finally:
                _end(waiting)
        if not self.navigates(page):
            self._complete.add(page)

    async def _wait_quiet(self, page: Page, wait: str) -> None:
        """Wait in all frames at once for short timers and for a moment without changes."""
        self._with_long_text.discard(page)
        main = page.main_frame
        frames = [frame for frame in page.frames if frame not in self._silent_frames]
        waits = {
            asyncio.ensure_future(self._wait_frame_quiet(frame, wait)): frame for frame in frames
        }
        main_wait = next((task for task, frame in waits.items() if frame is main), None)
        try:
            while main_wait is not None and not main_wait.done() and not page.is_closed():
                if self.navigates(page):
                    raise PageUnresponsiveError
                is_event = await self._task_or_change(main_wait, UNRESPONSIVE_SECONDS)
                if not is_event and not await self._responds(page):
                    raise PageUnresponsiveError
            late = (await asyncio.wait(waits, timeout=FRAME_TIMEOUT_SECONDS))[1] if waits else set()
            self._silent_frames.update(waits[task] for task in late if waits[task] is not main)
        finally:
            for task in waits:
                task.cancel()

    async def _responds(self, page: Page) -> bool:
        return await self._watchdog.responds(page.evaluate("1"))

    async def _wait_frame_quiet(self, frame: Frame, wait: str) -> None:
        # A frame that navigates or disappears cannot respond.
        with contextlib.suppress(Exception):
            options = {"limit": QUIET_TIMEOUT_MS, "wait": wait, "longText": LONG_TEXT_CHARS}
            result = await frame.evaluate(SETTLE, [self._secret, options])
            self._downloads += result["downloads"]
            if result["hasLongText"]:
                self._with_long_text.add(frame.page)
            if result["closes"] and frame is frame.page.main_frame and not frame.page.is_closed():
                await frame.page.wait_for_event("close", timeout=CLOSE_TIMEOUT_MS)

    async def _wait_change(self, deadline: float) -> bool:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), deadline - time.monotonic())
        except TimeoutError:
            return False
        return True

    async def _task_or_change(self, task: asyncio.Future[Any], seconds: float) -> bool:
        """Wait for a task or a change; return False after a timeout."""
        self._changed.clear()
        change = asyncio.ensure_future(self._changed.wait())
        try:
            done, _ = await asyncio.wait(
                [task, change], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            change.cancel()
        return bool(done)


def _tab_of(request: Request) -> Page | None:
    """Return the tab whose main frame sent a request; None for inner frames."""
    try:
        frame = request.frame
    except Exception:  # a tab that is still opening, or a service worker
        return None
    return frame.page if frame.parent_frame is None else None


def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task, or retrieve its exception if it has ended."""
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        task.exception()
