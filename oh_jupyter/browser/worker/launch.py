"""Launch of a browser, with or without a profile, or connection to a running one."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.channel.pipe import LaunchSettings
from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

DRIVER_PRELOAD = Path(__file__).with_name("driver_limits.cjs")
CHROMIUM_ARGUMENTS = (
    # Start-up and idle traffic, which would only time out in a closed network.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    # Finish a scroll at once, not some frames later.
    "--disable-smooth-scrolling",
)


@dataclass
class OpenedBrowser:
    """A running browser."""

    playwright: Playwright
    browser: Browser | None
    context: BrowserContext
    is_ours: bool
    records_requests: bool = False

    def is_connected(self) -> bool:
        """Return whether the browser is still connected."""
        return self.browser is None or self.browser.is_connected()

    async def when_gone(self, callback: Callable[[], None]) -> None:
        """Call back when the browser ends, or can create no more pages."""
        self.context.on("close", lambda _: callback())
        # If its driver dies, Playwright does not report that the browser is gone.
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
        """Wait for a response from the browser."""
        if self.browser is None:
            await self.context.cookies()
            return
        session = await self.browser.new_browser_cdp_session()
        await session.send("Browser.getVersion")
        await session.detach()

    async def close(self) -> None:
        """Close the browser, or only disconnect from one that another program owns."""
        with contextlib.suppress(Exception):
            if self.records_requests:
                # Closing the context writes the HAR archive.
                await self.context.close()
            if self.browser is not None:
                await self.browser.close()
        with contextlib.suppress(Exception):
            await self.playwright.stop()


def _watch_zygotes(browser_pid: int, callback: Callable[[], None]) -> None:
    """Call back when a zygote ends: renderers are forked from these, and nothing replaces them."""
    if not hasattr(os, "pidfd_open"):
        return
    for children in Path(f"/proc/{browser_pid}/task").glob("*/children"):
        for pid in children.read_text("ascii").split():
            if b"--type=zygote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                pidfd = os.pidfd_open(int(pid))
                asyncio.get_running_loop().add_reader(pidfd, _zygote_ended, pidfd, callback)


def _zygote_ended(descriptor: int, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)
    callback()


def limit_driver_memory() -> None:
    """Limit the objects that the Playwright driver of this process keeps in memory."""
    if DRIVER_PRELOAD.is_file():
        options = os.environ.get("NODE_OPTIONS", "")
        os.environ["NODE_OPTIONS"] = f'{options} --require "{DRIVER_PRELOAD.as_posix()}"'.strip()


async def open_browser(settings: LaunchSettings) -> OpenedBrowser:
    """Start the browser, or connect to a running one."""
    from playwright.async_api import async_playwright

    try:
        playwright = await async_playwright().start()
    except Exception as error:
        raise RuntimeError(f"Playwright's driver failed before the browser: {error}") from error
    try:
        opened = await _open(playwright, settings)
    except BaseException:
        await playwright.stop()
        raise
    opened.records_requests = bool(settings.har_path) and opened.is_ours
    await settings.origins.install(opened.context)
    return opened


async def _open(playwright: Playwright, settings: LaunchSettings) -> OpenedBrowser:
    chromium = playwright.chromium
    if settings.cdp_url:
        try:
            browser = await chromium.connect_over_cdp(settings.cdp_url)
        except Exception as error:
            raise BrowserError(
                f"No browser responds at {settings.cdp_url}. Start one with "
                f"--remote-debugging-port and use its address. ({str(error).splitlines()[0]})"
            ) from error
        context = browser.contexts[0] if browser.contexts else await browser.new_context()
        await _add_cookies(context, settings)
        return OpenedBrowser(playwright, browser, context, is_ours=False)
    options = _context_options(playwright, settings)
    launch_options: dict[str, Any] = {
        "executable_path": settings.executable,
        "headless": settings.headless,
        "chromium_sandbox": settings.sandbox,
        "handle_sigint": False,
        "handle_sigterm": False,
        "handle_sighup": False,
        "args": [*CHROMIUM_ARGUMENTS, *settings.origins.arguments()],
    }
    if settings.user_data_dir:
        folder = Path(settings.user_data_dir).expanduser()
        _make_folder(folder)
        with _short_launch_errors(f"The profile {folder}"):
            context = await chromium.launch_persistent_context(folder, **launch_options, **options)
        await _add_cookies(context, settings)
        return OpenedBrowser(playwright, context.browser, context, is_ours=True)
    with _short_launch_errors(settings.executable):
        browser = await chromium.launch(**launch_options)
    if settings.storage_state is not None:
        options["storage_state"] = settings.storage_state
    return OpenedBrowser(playwright, browser, await browser.new_context(**options), is_ours=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrowserError(
            f"The profile folder {folder} cannot be created: {error.strerror}. Set user_data_dir "
            "to a writable folder."
        ) from error


@contextlib.contextmanager
def _short_launch_errors(subject: str) -> Iterator[None]:
    """Shorten Playwright's launch errors to one line."""
    try:
        yield
    except Exception as error:
        message = str(error)
        if "XServer" in message or "Missing X server" in message:
            raise BrowserError(
                "A browser with a window needs a display, and neither DISPLAY nor WAYLAND_DISPLAY "
                "names a usable one. Use headless=True, or start the program with xvfb-run."
            ) from error
        if "ProcessSingleton" in message or "existing browser session" in message:
            raise BrowserError(
                f"{subject} is in use by another browser. Close that browser, or use another "
                "user_data_dir."
            ) from error
        first, *rest = message.splitlines()
        stderr = [line.partition("[err] ")[2] for line in rest if "[err] " in line]
        raise RuntimeError(" ".join([first, *stderr[-2:]])) from error


def _context_options(playwright: Playwright, settings: LaunchSettings) -> dict[str, Any]:
    width, height = settings.viewport
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": height},
        "accept_downloads": True,
    }
    if settings.allowed_origins or settings.blocked_origins:
        # Playwright cannot intercept requests of service workers.
        options["service_workers"] = "block"
    if settings.har_path:
        options["record_har_path"] = settings.har_path
    if settings.device:
        if settings.device not in playwright.devices:
            matches = get_close_matches(settings.device, playwright.devices, cutoff=0.3)
            raise BrowserError(
                f"Unknown device {settings.device!r}. Similar names: {', '.join(matches) or 'none'}"
                ". Use a name from Playwright's list of devices."
            )
        device = dict(playwright.devices[settings.device])
        device.pop("default_browser_type", None)
        options.update(device)
    return options


async def _add_cookies(context: BrowserContext, settings: LaunchSettings) -> None:
    """Add the cookies of a storage state, which is all that an existing context accepts."""
    if settings.storage_state is not None:
        await context.add_cookies(settings.storage_state.get("cookies", []))
