"""How the browser is started or found: by itself, with a profile, or one that runs already."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.addresses import OriginFilter
from oh_jupyter.browser.channel.protocol import LaunchSettings
from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

DRIVER_PRELOAD = Path(__file__).with_name("driver_limits.cjs")
CHROMIUM_ARGUMENTS = (
    # Start-up and idle traffic that a closed network would only let time out.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    # A scroll is finished when it was asked for, not some frames later.
    "--disable-smooth-scrolling",
)


@dataclass
class OpenedBrowser:
    """A browser that runs."""

    playwright: Playwright
    browser: Browser | None
    context: BrowserContext
    is_ours: bool
    records_requests: bool = False

    def is_connected(self) -> bool:
        """Tell whether the browser is still there."""
        return self.browser is None or self.browser.is_connected()

    async def when_gone(self, callback: Callable[[], None]) -> None:
        """Ask to be told when the browser is gone, or can make no pages any more."""
        self.context.on("close", lambda _: callback())
        # Without its driver Playwright tells nobody that the browser is gone.
        connection = getattr(getattr(self.playwright, "_impl_obj", None), "_connection", None)
        if connection is not None:
            connection.on("close", callback)
        if self.browser is not None:
            self.browser.on("disconnected", lambda _: callback())
            if self.is_ours:
                with contextlib.suppress(Exception):
                    session = await self.browser.new_browser_cdp_session()
                    processes = await session.send("SystemInfo.getProcessInfo")
                    await session.detach()
                    for each in processes["processInfo"]:
                        if each["type"] == "browser":
                            _watch_zygotes(each["id"], callback)

    async def ping(self) -> None:
        """Ask the browser for a sign of life, and wait for it."""
        if self.browser is None:
            await self.context.cookies()
            return
        session = await self.browser.new_browser_cdp_session()
        await session.send("Browser.getVersion")
        await session.detach()

    async def close(self) -> None:
        """End the browser, or leave it alone if it is not ours."""
        with contextlib.suppress(Exception):
            if self.records_requests:
                # This writes the archive.
                await self.context.close()
            if self.browser is not None:
                await self.browser.close()
        with contextlib.suppress(Exception):
            await self.playwright.stop()


def _watch_zygotes(browser_pid: int, callback: Callable[[], None]) -> None:
    """Wait for the end of the processes that renderers are forked from, which nothing replaces."""
    if not hasattr(os, "pidfd_open"):
        return
    for listed in Path(f"/proc/{browser_pid}/task").glob("*/children"):
        for pid in listed.read_text("ascii").split():
            if b"--type=zygote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                ended = os.pidfd_open(int(pid))
                asyncio.get_running_loop().add_reader(ended, _told_once, ended, callback)


def _told_once(descriptor: int, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)
    callback()


def limit_driver_memory() -> None:
    """Make Playwright's driver, once started by this process, remember less."""
    if DRIVER_PRELOAD.is_file():
        given = os.environ.get("NODE_OPTIONS", "")
        os.environ["NODE_OPTIONS"] = f'{given} --require "{DRIVER_PRELOAD.as_posix()}"'.strip()


async def open_browser(settings: LaunchSettings) -> OpenedBrowser:
    """Start the browser, or connect to the one that runs."""
    from playwright.async_api import async_playwright

    playwright = await async_playwright().start()
    try:
        opened = await _open(playwright, settings)
    except BaseException:
        await playwright.stop()
        raise
    opened.records_requests = bool(settings.har_path) and opened.is_ours
    origins = OriginFilter(settings.allowed_origins, settings.blocked_origins)
    await origins.install(opened.context)
    return opened


async def _open(playwright: Playwright, settings: LaunchSettings) -> OpenedBrowser:
    chromium = playwright.chromium
    if settings.cdp_url:
        try:
            browser = await chromium.connect_over_cdp(settings.cdp_url)
        except Exception as error:
            raise BrowserError(
                f"No browser answers at {settings.cdp_url}. Start one with "
                f"--remote-debugging-port, and use its address. ({str(error).splitlines()[0]})"
            ) from error
        context = browser.contexts[0] if browser.contexts else await browser.new_context()
        await _add_cookies(context, settings)
        return OpenedBrowser(playwright, browser, context, is_ours=False)
    options = _context_options(playwright, settings)
    origins = OriginFilter(settings.allowed_origins, settings.blocked_origins)
    how: dict[str, Any] = {
        "executable_path": settings.executable,
        "headless": settings.headless,
        "chromium_sandbox": settings.sandbox,
        "handle_sigint": False,
        "handle_sigterm": False,
        "handle_sighup": False,
        "args": [*CHROMIUM_ARGUMENTS, *origins.arguments()],
    }
    if settings.user_data_dir:
        folder = Path(settings.user_data_dir).expanduser()
        _make_folder(folder)
        with _short_launch_errors(f"The profile {folder}"):
            context = await chromium.launch_persistent_context(folder, **how, **options)
        await _add_cookies(context, settings)
        return OpenedBrowser(playwright, context.browser, context, is_ours=True)
    with _short_launch_errors(settings.executable):
        browser = await chromium.launch(**how)
    if settings.storage_state is not None:
        options["storage_state"] = settings.storage_state
    return OpenedBrowser(playwright, browser, await browser.new_context(**options), is_ours=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrowserError(
            f"The profile's folder {folder} cannot be made: {error.strerror}. Give the path of a "
            "folder that you may write to as user_data_dir."
        ) from error


@contextlib.contextmanager
def _short_launch_errors(what: str) -> Iterator[None]:
    """Say in a line why a browser did not start; Playwright says it in a page."""
    try:
        yield
    except Exception as error:
        message = str(error)
        if "XServer" in message or "Missing X server" in message:
            raise BrowserError(
                "A browser with a window needs a display, and there is none at DISPLAY or "
                "WAYLAND_DISPLAY. Use headless=True, or start the program with xvfb-run."
            ) from error
        if "ProcessSingleton" in message or "existing browser session" in message:
            raise BrowserError(
                f"{what} is in use by another browser, and serves one at a time. Close that one, "
                "or use another user_data_dir."
            ) from error
        first, *rest = message.splitlines()
        said = [line.partition("[err] ")[2] for line in rest if "[err] " in line]
        raise RuntimeError(" ".join([first, *said[-2:]])) from error


def _context_options(playwright: Playwright, settings: LaunchSettings) -> dict[str, Any]:
    width, height = settings.viewport
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": height},
        "accept_downloads": True,
    }
    if settings.allowed_origins or settings.blocked_origins:
        # Their requests could not be held back.
        options["service_workers"] = "block"
    if settings.har_path:
        options["record_har_path"] = settings.har_path
    if settings.device:
        if settings.device not in playwright.devices:
            near = get_close_matches(settings.device, playwright.devices, cutoff=0.3)
            raise BrowserError(
                f"There is no device {settings.device!r}. Near it: {', '.join(near) or 'none'}. "
                "The names are those of Playwright's list of devices."
            )
        device = dict(playwright.devices[settings.device])
        device.pop("default_browser_type", None)
        options.update(device)
    return options


async def _add_cookies(context: BrowserContext, settings: LaunchSettings) -> None:
    """Put in what can be put into a context that is there already: the cookies."""
    if settings.storage_state is not None:
        await context.add_cookies(settings.storage_state.get("cookies", []))
