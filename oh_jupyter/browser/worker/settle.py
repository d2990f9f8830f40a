"""Waiting until an action has had its effect: for events, within bounds, never a fixed time.

Waited for: a navigation until its page is there; requests that the action set off; short
timers, a frame being drawn and a moment without changes (``activity.js``). Not waited for:
polling loops, streams, media, whatever ran before the action.
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

from oh_jupyter.browser.worker.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request

ACTIVITY = files("oh_jupyter.browser.worker").joinpath("activity.js").read_text("utf-8")

SETTLE = """([secret, options]) => {
  const question = { secret };
  try {
    Function.prototype.toString.call(question);
  } catch {}
  return question.settle && question.settle(options);
}"""
REQUEST_TIMEOUT_SECONDS = 2.5
"""Seconds after the action in which requests are waited for."""
NAVIGATION_TIMEOUT_SECONDS = 10.0
"""Seconds after the action in which a new page is waited for."""
LOAD_STATES: tuple[tuple[Literal["domcontentloaded", "load"], float], ...] = (
    ("domcontentloaded", NAVIGATION_TIMEOUT_SECONDS),
    ("load", REQUEST_TIMEOUT_SECONDS),
)
"""What a page has to reach before it is looked at, within so many seconds of the action; a page
that is only being parsed, without requests, takes as long as the machine makes it take."""
MAX_COMPUTING_SECONDS = 20.0
"""Seconds by which these bounds grow, at most, while the page computes."""
QUIET_TIMEOUT_MS = 600
"""Milliseconds that one wait for timers and changes may take."""
FRAME_TIMEOUT_SECONDS = 0.7
"""Seconds that the frames of a page may take longer than the page itself."""
UNRESPONSIVE_SECONDS = 2.0
"""Seconds without an answer after which a page is asked whether it hangs."""
IGNORED_RESOURCE_TYPES = frozenset(
    {"eventsource", "manifest", "media", "ping", "texttrack", "websocket"}
)
CLOSE_TIMEOUT_MS = 2_000
"""Milliseconds in which a page that closes itself is gone."""
POLLING_ROUNDS, POLLING_WINDOW_SECONDS, POLLING_ROUND_GAP_SECONDS = 5, 5.0, 0.1
"""An address asked for in so many rounds within so many seconds is a polling loop; requests
that are less than the gap apart are one round."""
MAX_VISITS = 15
"""Pages that a tab asks for in one look, until that counts as a loop."""
MIN_LOOP_VISITS = 5
"""The same of a tab that has still not arrived when the time for it is over."""
MAX_ADDRESSES = 1000
"""Addresses remembered to find such loops; those of a loop are asked for again soon."""


class NavigationLoopError(Exception):
    """A tab goes on to another page again and again."""


class PageUnresponsiveError(Exception):
    """A page does not answer: one of its scripts does not end."""


class ActivityTracker:
    """Knows which requests, navigations and new windows of a browser context are under way."""

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
        context.on("request", self._started)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)

    @property
    def script(self) -> str:
        """The script that has to run in every frame before the page's own."""
        return ACTIVITY.replace("SECRET", self._secret)

    def begin(self) -> None:
        """Start a step: what is under way now does not belong to it."""
        self._pending.clear()
        self._navigations.clear()
        self._visits.clear()
        self._windows = 0
        self._downloads = 0

    def window_opens(self, _event: Any = None) -> None:
        """Note that a page has asked for a new window, which is not there yet."""
        self._windows += 1
        self._last_window = time.monotonic()

    def window_opened(self) -> None:
        """Note that a new window is there."""
        self._windows = max(0, self._windows - 1)
        self._last_window = time.monotonic()
        self._changed.set()

    def download_begun(self) -> None:
        """Note that a download that was asked for is under way."""
        self._downloads -= 1
        self._changed.set()

    def _started(self, request: Request) -> None:
        if request.resource_type in IGNORED_RESOURCE_TYPES:
            return
        if request.is_navigation_request():
            # Loops belong to the page that is left now, or to another frame: seen again soon.
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
        """Tell whether the same address was just asked again and again."""
        address = request.method, request.url.partition("?")[0]
        now = time.monotonic()
        rounds = [at for at in self._rounds.get(address, ()) if now - at < POLLING_WINDOW_SECONDS]
        is_loop = len(rounds) >= POLLING_ROUNDS
        if not rounds or now - rounds[-1] > POLLING_ROUND_GAP_SECONDS:
            # What comes in one burst is one round: a page may need many answers at once.
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
        """Tell how long something is worth waiting for; many windows come one after another."""
        bound = max(self._pending.values(), default=0.0)
        if self._downloads > 0:
            bound = max(bound, REQUEST_TIMEOUT_SECONDS)
        left = bound - patience.idle
        if self._windows:
            opened = self._last_window + REQUEST_TIMEOUT_SECONDS - time.monotonic()
            left = max(left, opened)
        return min(left, NAVIGATION_TIMEOUT_SECONDS - patience.idle)

    def navigates(self, page: Page) -> bool:
        """Tell whether a tab is on its way to another page, which has not answered yet."""
        return any(_tab_of(request) is page for request in self._navigations)

    def _is_loop(self, page: Page) -> bool:
        return self._visits[page] > MAX_VISITS

    def goes_on(self, page: Page) -> bool:
        """Tell whether a tab that has not arrived anywhere yet does so for asking on and on."""
        return self._visits[page] >= MIN_LOOP_VISITS

    def page_shown(self, frame: Frame) -> None:
        """Note that a frame shows another page; what is left of it is an ordinary request."""
        if frame.parent_frame is None:
            gone = [each for each in self._navigations if _tab_of(each) is frame.page]
            self._navigations.difference_update(gone)
            self._complete.discard(frame.page)
            self._changed.set()

    async def navigated(self, page: Page, deadline: float | None = None) -> None:
        """Wait until a navigation that is under way has shown its page."""
        deadline = deadline or time.monotonic() + NAVIGATION_TIMEOUT_SECONDS
        while self.navigates(page) and not self._is_loop(page):
            if not await self._wait_change(deadline):
                break
        # A page that loads for ever is used as it is.
        with contextlib.suppress(Exception):
            left_ms = max(1.0, (deadline - time.monotonic()) * 1000)
            await page.wait_for_load_state("domcontentloaded", timeout=left_ms)

    async def settle(self, page: Page, *, wait: str = "frame") -> bool:
        """Wait for the effects of an action within bounds; False if a navigation is unanswered."""
        # Even if nothing seems under way: for one "frame", for a "turn" of scripts, or "none".
        async with self._watchdog.patience(MAX_COMPUTING_SECONDS) as patience:
            return await self._settle(page, wait, patience)

    async def _settle(self, page: Page, wait: str, patience: Patience) -> bool:
        start = time.monotonic()
        while True:
            if self.navigates(page):
                # Until its page is there, the browser holds back every question to the old one.
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
            while not page.is_closed() and (left := self._seconds_left(patience)) > 0:
                if await self._wait_change(time.monotonic() + left):
                    break
            else:
                return not self.navigates(page)

    async def _loaded(self, page: Page, patience: Patience) -> None:
        """Wait until the page and its frames are parsed; what was in vain is not repeated."""
        # Playwright does not always tell that the browser's own page for errors is parsed.
        if page in self._complete or page.url.startswith("chrome-error:"):
            return
        for state, seconds in LOAD_STATES:
            waiting = asyncio.ensure_future(page.wait_for_load_state(state, timeout=0))
            # A page that was in that state already has answered after this.
            await asyncio.sleep(0)
            try:
                while not (waiting.done() or page.is_closed() or self.navigates(page)):
                    bound = REQUEST_TIMEOUT_SECONDS if self._pending else seconds
                    left = bound - patience.idle
                    if left <= 0:
                        break
                    is_event = await self._task_or_change(waiting, min(left, UNRESPONSIVE_SECONDS))
                    if not is_event and not await self._answers(page):
                        raise PageUnresponsiveError
            finally:
                _end(waiting)
        if not self.navigates(page):
            self._complete.add(page)

    async def _wait_quiet(self, page: Page, wait: str) -> None:
        """Wait in all frames at once for short timers and for a moment without changes."""
        main = page.main_frame
        frames = [frame for frame in page.frames if frame not in self._silent_frames]
        asked = {
            asyncio.ensure_future(self._wait_frame_quiet(frame, wait)): frame for frame in frames
        }
        own = next((task for task, frame in asked.items() if frame is main), None)
        try:
            while own is not None and not own.done() and not page.is_closed():
                if self.navigates(page):
                    raise PageUnresponsiveError
                is_event = await self._task_or_change(own, UNRESPONSIVE_SECONDS)
                if not is_event and not await self._answers(page):
                    raise PageUnresponsiveError
            late = (await asyncio.wait(asked, timeout=FRAME_TIMEOUT_SECONDS))[1] if asked else set()
            self._silent_frames.update(asked[task] for task in late if asked[task] is not main)
        finally:
            for task in asked:
                task.cancel()

    async def _answers(self, page: Page) -> bool:
        return await self._watchdog.answers(page.evaluate("1"))

    async def _wait_frame_quiet(self, frame: Frame, wait: str) -> None:
        # A frame that navigates or goes away cannot be asked.
        with contextlib.suppress(Exception):
            options = {"limit": QUIET_TIMEOUT_MS, "wait": wait}
            asked = await frame.evaluate(SETTLE, [self._secret, options])
            self._downloads += asked["downloads"]
            if asked["closes"] and frame is frame.page.main_frame and not frame.page.is_closed():
                await frame.page.wait_for_event("close", timeout=CLOSE_TIMEOUT_MS)

    async def _wait_change(self, deadline: float) -> bool:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), deadline - time.monotonic())
        except TimeoutError:
            return False
        return True

    async def _task_or_change(self, task: asyncio.Future[Any], seconds: float) -> bool:
        """Wait for a task or a change; False if neither came in time."""
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
    """Find the tab whose own page is asked for; None for frames in a page."""
    try:
        frame = request.frame
    except Exception:  # a tab that is only being opened, or a service worker
        return None
    return frame.page if frame.parent_frame is None else None


def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task, or take note of how it ended."""
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        task.exception()
