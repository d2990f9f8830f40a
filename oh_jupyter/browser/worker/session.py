"""A running browser: its tabs and their events.

Dialogs, popups, downloads, crashes and hung scripts arrive as events. The session reports them
to the agent as *notices* and *downloads* of the current step.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.addresses import shortened_url
from oh_jupyter.browser.channel.downloads import DownloadSaver
from oh_jupyter.browser.channel.pipe import LaunchSettings
from oh_jupyter.browser.worker.dialogs import Dialogs
from oh_jupyter.browser.worker.inspector import PageInspector
from oh_jupyter.browser.worker.launch import OpenedBrowser, open_browser
from oh_jupyter.browser.worker.local_files import LocalFiles
from oh_jupyter.browser.worker.recorder import Recorder
from oh_jupyter.browser.worker.screencast import Screencast
from oh_jupyter.browser.worker.settle import ActivityTracker
from oh_jupyter.browser.worker.watchdog import Watchdog
from oh_jupyter.errors import BrowserActionError

if TYPE_CHECKING:
    from playwright.async_api import (
        BrowserContext,
        Dialog,
        Download,
        ElementHandle,
        FileChooser,
        Page,
    )

DOCUMENTS_PER_COLLECTION = 25
"""Documents that a tab shows, frames included, before a garbage collection. Chromium collects only
when idle: over 500 pages with frames, the tab's process grew from 40 to 300 MB."""
CLEANUP_TIMEOUT_SECONDS = 2.0
MAX_TABS = 20
"""Tabs that pages and agents may open."""
LEFT_LOOP = " kept navigating to another page; its tab was reset to about:blank."
STOPPED_BEFORE = (
    "A script of this page did not end in an earlier step and was stopped: the page may be "
    "incomplete. Reload it with goto."
)
CLOSE_TIMEOUT_SECONDS, CLOSE_INTERVAL_SECONDS = 3.0, 0.01
"""Timeout and polling interval, in seconds, for a tab that may ask before it closes."""
LOST_BY_CRASH = " and its tab was closed; anything entered there is lost."
LEAVE_ATTEMPTS, LEAVE_TIMEOUT_MS = 5, 2_000
TERMINATE_TIMEOUT_SECONDS = 3.0
"""Timeout of stopping a script, which needs the page's process but not its main thread."""


@dataclass
class BrowserSession:
    """A browser and its tabs, one of which is active."""

    settings: LaunchSettings
    opened: OpenedBrowser
    watchdog: Watchdog
    tracker: ActivityTracker
    recorder: Recorder
    saver: DownloadSaver
    notices: list[str]
    local_files: LocalFiles
    losses: list[str] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    handles: list[ElementHandle] = field(default_factory=list)
    cwd: str = ""
    text_start: int = 0
    started: float = field(default_factory=time.monotonic)
    _active: list[Page] = field(default_factory=list)
    _ours: list[Page] = field(default_factory=list)
    _inspectors: dict[Page, PageInspector] = field(default_factory=dict)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _crashed: set[Page] = field(default_factory=set)
    _discarded: set[Page] = field(default_factory=set)
    _emptied: Page | None = None
    _answers_choosers: bool = False
    _opens_tab: bool = False

    def __post_init__(self) -> None:
        """Create the parts that need the other fields."""
        self.screencast = Screencast(self)
        self.dialogs = Dialogs(self.settings.accept_dialogs, self.notices, self.losses)

    @classmethod
    async def start(cls, settings: LaunchSettings) -> BrowserSession:
        """Start the browser and open a blank tab."""
        opened = await open_browser(settings)
        context = opened.context
        watchdog = Watchdog(opened.browser)
        tracker = ActivityTracker(context, watchdog)
        await context.add_init_script(tracker.script)
        notices: list[str] = []
        saver = DownloadSaver(settings.downloads_dir, notices)
        session = cls(
            settings, opened, watchdog, tracker, Recorder(context), saver, notices,
            LocalFiles(notices),
        )  # fmt: skip
        settings.origins.watch(context, session.losses, notices)
        for page in context.pages:
            session._page_opened(page)
            for frame in page.frames:
                with contextlib.suppress(Exception):
                    await frame.evaluate(tracker.script)
        context.on("page", session._window_opened)
        if not context.pages or not opened.is_ours:
            await session.open_tab()
        await session.ensure_page()
        return session

    @property
    def context(self) -> BrowserContext:
        """Browser context of all tabs."""
        return self.opened.context

    async def close(self) -> None:
        """Close the browser, or only this session's tabs if another program owns the browser."""
        if not self.opened.is_ours:
            for page in self._ours:
                with contextlib.suppress(Exception):
                    await page.close()
        await self.opened.close()

    @property
    def page(self) -> Page:
        """The active tab."""
        return self._active[-1]

    @property
    def active_page(self) -> Page | None:
        """The active tab, or None if no tab is open at the moment."""
        return next((page for page in reversed(self._active) if not page.is_closed()), None)

    @property
    def tabs(self) -> list[Page]:
        """All tabs in the order in which they were opened, without those that were discarded."""
        return [
            page
            for page in self.context.pages
            if not page.is_closed() and page not in self._discarded
        ]

    @property
    def inspectors(self) -> list[PageInspector]:
        """The inspectors of all tabs that have been active."""
        return list(self._inspectors.values())

    async def inspector(self) -> PageInspector:
        """Return the active tab's inspector."""
        page = self.page
        if page not in self._inspectors:
            inspector = await PageInspector.attach(page)
            inspector.session.on("Page.windowOpen", self.tracker.window_opens)
            self._inspectors[page] = inspector
        return self._inspectors[page]

    async def element(self, bid: str) -> ElementHandle:
        """Return a handle of an element of the active tab; the step releases it at its end."""
        handle = await (await self.inspector()).element(bid)
        self.handles.append(handle)
        return handle

    async def release_resources(self) -> None:
        """Release the last step's resources; call this after sending its result."""
        handles, self.handles = self.handles, []
        work: list[Awaitable[Any]] = [handle.dispose() for handle in handles]
        for inspector in self.inspectors:
            if inspector.documents_shown >= DOCUMENTS_PER_COLLECTION:
                inspector.documents_shown = 0
                work += [each.send("HeapProfiler.collectGarbage") for each in inspector.sessions]
        if work:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    asyncio.gather(*work, return_exceptions=True), CLEANUP_TIMEOUT_SECONDS
                )

    def add_message(self, role: str, text: str) -> None:
        """Add a message to the chat."""
        self.messages.append({"role": role, "timestamp": time.time(), "message": text})

    async def open_tab(self) -> None:
        """Open a blank tab and make it the active one."""
        self._opens_tab = True
        try:
            page = await self.context.new_page()
        finally:
            self._opens_tab = False
        self._ours.append(page)
        self._page_opened(page)
        await self.inspector()

    async def close_tab(self) -> None:
        """Close the active tab unless it asks to stay, and activate the previous one."""
        page = self.page
        # Playwright does not wait for the page's beforeunload dialog.
        await page.close(run_before_unload=True)
        deadline = time.monotonic() + CLOSE_TIMEOUT_SECONDS
        while not (page.is_closed() or self.dialogs.kept_page or time.monotonic() > deadline):
            await asyncio.sleep(CLOSE_INTERVAL_SECONDS)
        if not self.dialogs.kept_page:
            await page.close()
        await self.ensure_page()

    async def focus_tab(self, index: int) -> None:
        """Make another tab the active one."""
        tabs = self.tabs
        if not -len(tabs) <= index < len(tabs):
            raise BrowserActionError(
                f"IndexError: there is no tab {index}: the {len(tabs)} open tabs are 0 to "
                f"{len(tabs) - 1}."
            )
        self._activate(tabs[index])
        await self.page.bring_to_front()

    async def ensure_page(self) -> None:
        """Ensure that an open tab is active, even after the last one crashed or closed."""
        for page in list(self._crashed):
            self._crashed.discard(page)
            # On a busy machine, a crashed tab may take longer to close.
            self._discarded.add(page)
            with contextlib.suppress(Exception):
                await asyncio.wait_for(page.close(), CLOSE_TIMEOUT_SECONDS)
            self._forget(page)
        self._active = [page for page in self._active if not page.is_closed()]
        if not self._active:
            await self.open_tab()
        elif self.page not in self._inspectors:
            await self.page.bring_to_front()
            await self.inspector()

    async def stop_loading(self) -> None:
        """Stop an unanswered navigation; the previous page stays."""
        inspector = self._inspectors.get(self.page)
        if inspector is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(inspector.session.send("Page.stopLoading"), 2)

    async def responds(self) -> bool:
        """Return whether the active tab responds, rather than hangs in a script."""
        inspector = self._inspectors.get(self.page)
        if inspector is None:
            return True
        probe = inspector.session.send("Runtime.evaluate", {"expression": "1"})
        return await self.watchdog.responds(probe)

    @property
    def has_crashed(self) -> bool:
        """Whether a page crashed during this step."""
        return any(LOST_BY_CRASH in loss for loss in self.losses)

    async def leave_loop(self) -> None:
        """Reset a tab whose pages keep navigating to another page."""
        if self._emptied is self.page and any(loss.endswith(LEFT_LOOP) for loss in self.losses):
            # A pending page of the loop arrived after the reset.
            self._crashed.add(self.page)
            await self.ensure_page()
            return
        url = shortened_url(self.page.url)
        await self.stop_loading()
        for _ in range(LEAVE_ATTEMPTS):
            with contextlib.suppress(Exception), self.dialogs.leaving():
                # The loop may interrupt this navigation.
                await self.page.goto("about:blank", timeout=LEAVE_TIMEOUT_MS)
                self._emptied = self.page
                break
        else:
            self._crashed.add(self.page)
            await self.ensure_page()
        self.losses.append(f"The page {url}{LEFT_LOOP}")

    def note_stopped_script(self) -> None:
        """Add a notice if an earlier step stopped a script of the current page."""
        inspector = self._inspectors.get(self.page)
        if inspector is not None and inspector.has_stopped_script and not self.losses:
            self.notices.append(STOPPED_BEFORE)

    async def stop_scripts(self) -> None:
        """Stop the scripts of a hung tab; close the tab if that does not help."""
        page = self.page
        url = shortened_url(page.url)
        inspector = self._inspectors.get(page)
        if inspector is not None:
            with contextlib.suppress(Exception):
                stop = inspector.session.send("Runtime.terminateExecution")
                await asyncio.wait_for(stop, TERMINATE_TIMEOUT_SECONDS)
                if await self.responds():
                    self.losses.append(f"A script of {url} did not end and was stopped.")
                    inspector.has_stopped_script = True
                    return
        self.losses.append(f"The page {url} hung and its tab was closed; its state is lost.")
        self._crashed.add(page)
        await self.ensure_page()

    def _activate(self, page: Page) -> None:
        self._active = [other for other in self._active if other is not page] + [page]
        self.screencast.tabs_changed()

    def _forget(self, page: Page) -> None:
        self._active = [other for other in self._active if other is not page]
        self._ours = [other for other in self._ours if other is not page]
        self._inspectors.pop(page, None)
        if page.is_closed():
            self._discarded.discard(page)
        self.screencast.tabs_changed()

    def _page_opened(self, page: Page) -> None:
        if page not in self._active:
            page.on("close", self._forget)
            page.on("dialog", self._dialog_opened)
            page.on("download", self._download_begun)
            page.on("crash", self._page_crashed)
            page.on("framenavigated", self.tracker.page_shown)
            # Playwright intercepts choosers only while it has a listener. A listener added when
            # an upload clicks can be too late for that click.
            page.on("filechooser", self._chooser_opened)
        self._activate(page)
        self.tracker.window_opened()

    def _window_opened(self, page: Page) -> None:
        """Track a new window, or close it if the page has opened too many."""
        self._page_opened(page)
        if self._opens_tab or len(self.tabs) <= MAX_TABS:
            return
        self._forget(page)
        notice = f"The page opened too many windows; at most {MAX_TABS} tabs stay open."
        if notice not in self.notices:
            self.notices.append(notice)
        self.run_aside(page.close())

    def run_aside(self, work: Awaitable[Any]) -> None:
        """Run something in the background and ignore its failure."""

        async def suppressed() -> None:
            with contextlib.suppress(Exception):
                await work

        task = asyncio.ensure_future(suppressed())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    @contextlib.contextmanager
    def answering_file_choosers(self) -> Iterator[None]:
        """Report no notices about file choosers within the block, which handles them."""
        self._answers_choosers = True
        try:
            yield
        finally:
            self._answers_choosers = False

    def _chooser_opened(self, _chooser: FileChooser) -> None:
        if not self._answers_choosers:
            self.notices.append(
                "The page asked for a file and received none: use upload_file(bid, path) instead "
                "of the click."
            )

    def _download_begun(self, download: Download) -> None:
        self.saver.begin(download)
        self.tracker.download_begun()

    def _page_crashed(self, page: Page) -> None:
        self._crashed.add(page)
        self.losses.append(
            f"The page {shortened_url(page.url)} crashed{LOST_BY_CRASH} Reopen it with goto; "
            "if it crashes again, use another approach."
        )

    def _dialog_opened(self, dialog: Dialog) -> None:
        self.run_aside(self.dialogs.answer(dialog))
