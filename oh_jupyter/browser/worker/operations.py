"""What can be asked of a running browser besides steps."""

from __future__ import annotations

from typing import Any

from oh_jupyter.browser.worker.session import BrowserSession
from oh_jupyter.errors import BrowserError

__all__ = ["evaluate", "load", "renew", "start_trace", "stop_trace", "storage_state"]


async def evaluate(session: BrowserSession, request: dict[str, Any]) -> Any:
    """Evaluate JavaScript in the active tab."""
    from playwright.async_api import Error

    await session.ensure_page()
    try:
        return await session.page.evaluate(request["expression"], request.get("argument"))
    except Error as error:
        raise BrowserError(f"The expression failed: {error.message.splitlines()[0]}") from error


async def load(session: BrowserSession, request: dict[str, Any]) -> None:
    """Show a page in the active tab, and wait until it is loaded."""
    from playwright.async_api import Error

    await session.ensure_page()
    try:
        if request.get("html") is not None:
            # A new document, so that its ids begin anew.
            await session.page.goto("about:blank")
            await session.page.set_content(request["html"])
        else:
            await session.page.goto(request["url"])
    except Error as error:
        raise BrowserError(error.message.splitlines()[0]) from error


async def renew(session: BrowserSession, request: dict[str, Any]) -> None:
    """Go back to one blank tab, without cookies and without messages."""
    tabs = session.tabs
    await session.open_tab()
    for page in tabs:
        await page.close(run_before_unload=False)
    await session.context.clear_cookies()
    session.messages.clear()
    session.saver.saved.clear()
    await session.ensure_page()


async def storage_state(session: BrowserSession, request: dict[str, Any]) -> Any:
    """Read cookies and local storage."""
    return await session.context.storage_state()


async def start_trace(session: BrowserSession, request: dict[str, Any]) -> None:
    """Begin to record what happens, with pictures and snapshots of the pages."""
    await session.context.tracing.start(screenshots=True, snapshots=True)


async def stop_trace(session: BrowserSession, request: dict[str, Any]) -> None:
    """Write down what was recorded."""
    await session.context.tracing.stop(path=request["path"])
