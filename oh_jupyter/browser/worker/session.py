"""A running browser: its tabs, and what happens to them by themselves.

Dialogs, popups, downloads, crashes and hung scripts come as events; what an agent has to know
of them is collected as *notices* and *downloads* of the present step.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.addresses import OriginFilter, shortened_url
from oh_jupyter.browser.channel.downloads import DownloadSaver
from oh_jupyter.browser.channel.protocol import LaunchSettings
from oh_jupyter.browser.worker.dialogs import Dialogs
from oh_jupyter.browser.worker.inspector import PageInspector
from oh_jupyter.browser.worker.launch import OpenedBrowser, open_browser
from oh_jupyter.browser.worker.recorder import Recorder, ScriptRecorder
from oh_jupyter.browser.worker.screencast import Screencast
from oh_jupyter.browser.worker.settle import ActivityTracker
from oh_jupyter.browser.worker.video import open_video, record_video
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
"""Documents that a tab shows, frames included, until the ones before are collected: over 500 pages
with frames its process grew from 40 to 300 MB, since Chromium collects only when it is idle."""
CLEANUP_TIMEOUT_SECONDS = 2.0
MAX_TABS = 20
"""Tabs that pages and agents may open."""
LEFT_LOOP = " went on to another page again and again; the tab was emptied."
STOPPED_BEFORE = (
    "A script of this page did not end in an earlier step and was stopped: the page may be "
    "incomplete. goto loads it again."
)
CLOSE_TIMEOUT_SECONDS, CLOSE_INTERVAL_SECONDS = 3.0, 0.01
"""Seconds in which a tab has to say whether it may be closed."""
LOST_BY_CRASH = " and its tab was closed; what was entered there is lost."
LEAVE_ATTEMPTS, LEAVE_TIMEOUT_MS = 5, 2_000
TERMINATE_TIMEOUT_SECONDS = 3.0
"""For what the browser does without the page, unless the page's process is gone."""


@dataclass
class BrowserSession:
    """The browser with its tabs; one of them is active."""

    settings: LaunchSettings
    opened: OpenedBrowser
    watchdog: Watchdog
    tracker: ActivityTracker
    recorder: Recorder
    saver: DownloadSaver
    notices: list[str] = field(default_factory=list)
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
    _emptied: Page | None = None
    _video: asyncio.Task[None] | None = None
    _answers_choosers: bool = False
    _opens_tab: bool = False

    def __post_init__(self) -> None:
        """Prepare what nobody watches yet."""
        self.screencast = Screencast(self)
        self.script = ScriptRecorder(self.opened.context)
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
        session = cls(settings, opened, watchdog, tracker, Recorder(context), saver, notices)
        origins = OriginFilter(settings.allowed_origins, settings.blocked_origins)
        origins.watch(context, session.losses, notices)
        for page in context.pages:
            session._page_opened(page)
            for frame in page.frames:
                with contextlib.suppress(Exception):
                    await frame.evaluate(tracker.script)
        context.on("page", session._window_opened)
        if not context.pages or not opened.is_ours:
            await session.open_tab()
        await session.ensure_page()
        if settings.video_path:
            session.begin_video(Path(settings.video_path))
        return session

    @property
    def context(self) -> BrowserContext:
        """What all tabs share."""
        return self.opened.context

    def begin_video(self, path: Path) -> None:
        """Record what the active tab shows until the browser is closed."""
        self._video = asyncio.ensure_future(record_video(self.screencast, open_video(path)))
        self._video.add_done_callback(self._video_ended)

    def _video_ended(self, video: asyncio.Task[None]) -> None:
        if not video.cancelled() and video.exception() is not None:
            self.notices.append(f"The video is no longer recorded: {video.exception()}.")

    async def close(self) -> None:
        """Close the browser; of one that is not ours, close what was opened here."""
        if self._video is not None:
            self._video.cancel()
            await asyncio.wait([self._video])
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
        """The active tab, unless there is none at the moment."""
        return next((page for page in reversed(self._active) if not page.is_closed()), None)

    @property
    def tabs(self) -> list[Page]:
        """All tabs in the order in which they were opened."""
        return [page for page in self.context.pages if not page.is_closed()]

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
        """Get hold of an element of the active tab."""
        handle = await (await self.inspector()).element(bid)
        self.handles.append(handle)
        return handle

    async def release_resources(self) -> None:
        """Let go of what the last step needed; for when the answer was sent."""
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
        """Close the active tab, unless it asks; the one that was active before is so again."""
        page = self.page
        # It is asked whether it may be closed, which Playwright does not wait for.
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
        """Make sure that a living tab is active, whatever happened to the last one."""
        for page in list(self._crashed):
            self._crashed.discard(page)
            with contextlib.suppress(Exception):
                await asyncio.wait_for(page.close(), 3)
            self._forget(page)
        self._active = [page for page in self._active if not page.is_closed()]
        if not self._active:
            await self.open_tab()
        elif self.page not in self._inspectors:
            await self.page.bring_to_front()
            await self.inspector()

    async def stop_loading(self) -> None:
        """Give up a navigation that is not answered; the page from before stays."""
        inspector = self._inspectors.get(self.page)
        if inspector is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(inspector.session.send("Page.stopLoading"), 2)

    async def responds(self) -> bool:
        """Find out whether the scripts of the active tab let it answer."""
        inspector = self._inspectors.get(self.page)
        if inspector is None:
            return True
        question = inspector.session.send("Runtime.evaluate", {"expression": "1"})
        return await self.watchdog.answers(question)

    @property
    def has_crashed(self) -> bool:
        """Whether a page has crashed in this step."""
        return any(LOST_BY_CRASH in loss for loss in self.losses)

    async def leave_loop(self) -> None:
        """Empty a tab whose pages go on to another one again and again."""
        if self._emptied is self.page and any(loss.endswith(LEFT_LOOP) for loss in self.losses):
            # A page that was on its way came after all.
            self._crashed.add(self.page)
            await self.ensure_page()
            return
        where = shortened_url(self.page.url)
        await self.stop_loading()
        for _ in range(LEAVE_ATTEMPTS):
            with contextlib.suppress(Exception), self.dialogs.leaving():
                # The loop may come in between.
                await self.page.goto("about:blank", timeout=LEAVE_TIMEOUT_MS)
                break
        self._emptied = self.page
        self.losses.append(f"The page {where}{LEFT_LOOP}")

    def note_stopped_script(self) -> None:
        """Say of a page, as long as it is shown, that one of its scripts was stopped."""
        inspector = self._inspectors.get(self.page)
        if inspector is not None and inspector.has_stopped_script and not self.losses:
            self.notices.append(STOPPED_BEFORE)

    async def stop_scripts(self) -> None:
        """Stop the scripts of a hung tab; close the tab if that does not help."""
        page = self.page
        where = shortened_url(page.url)
        inspector = self._inspectors.get(page)
        if inspector is not None:
            with contextlib.suppress(Exception):
                stop = inspector.session.send("Runtime.terminateExecution")
                await asyncio.wait_for(stop, TERMINATE_TIMEOUT_SECONDS)
                if await self.responds():
                    self.losses.append(f"A script of {where} did not end and was stopped.")
                    inspector.has_stopped_script = True
                    return
        self.losses.append(f"The page {where} hung and its tab was closed; its state is lost.")
        self._crashed.add(page)
        await self.ensure_page()

    def _activate(self, page: Page) -> None:
        self._active = [other for other in self._active if other is not page] + [page]
        self.screencast.tabs_changed()

    def _forget(self, page: Page) -> None:
        self._active = [other for other in self._active if other is not page]
        self._ours = [other for other in self._ours if other is not page]
        self._inspectors.pop(page, None)
        self.screencast.tabs_changed()

    def _page_opened(self, page: Page) -> None:
        if page not in self._active:
            page.on("close", self._forget)
            page.on("dialog", self._dialog_opened)
            page.on("download", self._download_begun)
            page.on("crash", self._page_crashed)
            page.on("framenavigated", self.tracker.page_shown)
            # While anybody listens, choosers are intercepted; to begin with it only when an
            # upload clicks can be too late for that click.
            page.on("filechooser", self._chooser_opened)
        self._activate(page)
        self.tracker.window_opened()

    def _window_opened(self, page: Page) -> None:
        """Take in a new window, or close it: pages may open them without end."""
        self._page_opened(page)
        if self._opens_tab or len(self.tabs) <= MAX_TABS:
            return
        self._forget(page)
        notice = f"The page opened more windows; only {MAX_TABS} tabs are kept open."
        if notice not in self.notices:
            self.notices.append(notice)
        self.run_aside(page.close())

    def run_aside(self, work: Awaitable[Any]) -> None:
        """Do something beside the step, whose failure matters to nobody."""

        async def suppressed() -> None:
            with contextlib.suppress(Exception):
                await work

        task = asyncio.ensure_future(suppressed())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    @contextlib.contextmanager
    def answering_file_choosers(self) -> Iterator[None]:
        """Within the block, somebody waits for file choosers."""
        self._answers_choosers = True
        try:
            yield
        finally:
            self._answers_choosers = False

    def _chooser_opened(self, _chooser: FileChooser) -> None:
        if not self._answers_choosers:
            self.notices.append(
                "The page asked for a file and got none: use upload_file(bid, path) instead of "
                "the click."
            )

    def _download_begun(self, download: Download) -> None:
        self.saver.begin(download)
        self.tracker.download_begun()

    def _page_crashed(self, page: Page) -> None:
        self._crashed.add(page)
        self.losses.append(
            f"The page {shortened_url(page.url)} crashed{LOST_BY_CRASH} Open it again with goto; "
            "if it crashes again, get what you need another way."
        )

    def _dialog_opened(self, dialog: Dialog) -> None:
        self.run_aside(self.dialogs.answer(dialog))
