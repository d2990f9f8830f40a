"""How the browser process is started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

__all__ = ["Settings", "launch"]

ARGUMENTS = (
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


@dataclass(frozen=True)
class Settings:
    """How a browser is started.

    Attributes:
        executable: Path of the browser.
        headless: Whether it runs without a window.
        viewport: Width and height in px.
        downloads_dir: Where finished downloads are put.
        accept_dialogs: Whether confirm and prompt dialogs are accepted; alerts always are.
        sandbox: Whether Chromium's own sandbox is on.
    """

    executable: str
    headless: bool
    viewport: tuple[int, int]
    downloads_dir: str
    accept_dialogs: bool
    sandbox: bool


async def launch(settings: Settings) -> tuple[Playwright, Browser, BrowserContext]:
    """Start the browser.

    Args:
        settings: How.

    Returns:
        Playwright, the browser, and the context that all tabs will share.
    """
    from playwright.async_api import async_playwright

    playwright = await async_playwright().start()
    browser = await playwright.chromium.launch(
        executable_path=settings.executable,
        headless=settings.headless,
        chromium_sandbox=settings.sandbox,
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
        args=list(ARGUMENTS),
    )
    width, height = settings.viewport
    context = await browser.new_context(
        viewport={"width": width, "height": height}, accept_downloads=True
    )
    return playwright, browser, context
