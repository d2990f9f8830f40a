"""Carrying out the calls of the action language on the session's active page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oh_jupyter.browser.channel.language import Call
from oh_jupyter.browser.worker.error_messages import error_cause
from oh_jupyter.browser.worker.pdf_view import show_pdf
from oh_jupyter.browser.worker.session import MAX_TABS
from oh_jupyter.errors import BrowserActionError

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

    from oh_jupyter.browser.worker.session import BrowserSession

__all__ = ["perform"]

ACTIONABILITY_TIMEOUT_MS = 500
"""Milliseconds that an element has to become ready for an action."""
NAVIGATION_TIMEOUT_MS = 30_000
"""Milliseconds that a navigation may take until the server answers."""
UPLOAD_TIMEOUT_MS = 5_000
_PERFORMED = re.compile(r"- (performing \w+ action|\w+ action done)[^\n]*\Z")
"""The end of Playwright's log of an action whose events were sent."""
SELECTED_SCRIPT = """(e, wanted) => {
  const chosen = [...e.selectedOptions].flatMap(o => [o.value, o.label]);
  return wanted.every(text => chosen.includes(text));
}"""


async def perform(call: Call, session: BrowserSession) -> None:
    """Carry out one call."""
    from playwright.async_api import Error

    page = session.page
    handler = _ELEMENT_HANDLERS.get(call.name) or _PAGE_HANDLERS.get(call.name)
    try:
        if handler is not None:
            await handler(page, session, **call.arguments)
        else:
            await _SESSION_HANDLERS[call.name](session, **call.arguments)
    except BrowserActionError as error:
        raise BrowserActionError(f"{error} In: {_call_label(call)}") from None
    except Error as error:
        cause = error_cause(type(error).__name__, error.message)
        raise BrowserActionError(f"{cause} In: {_call_label(call)}") from error


def _call_label(call: Call) -> str:
    source = " ".join(call.source.split()) or call.name
    return source if len(source) <= 120 else source[:120] + "…"


NAVIGABLE_SCHEMES = frozenset({"about", "blob", "chrome", "data", "file", "http", "https"})
"""Schemes of what is a page; others run a script, start a program, or hide what they show."""


def _checked_url(url: str) -> str:
    """Check the address of a goto."""
    url = url.strip()
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise BrowserActionError(f"ValueError: {url!r} is not a valid address: {error}.") from None
    if not scheme or (len(scheme) == 1 and url[1:3] == ":\\"):
        raise BrowserActionError(
            f"ValueError: {url!r} is not an absolute address. Begin with a scheme, such as "
            "https:// or file://."
        )
    if scheme not in NAVIGABLE_SCHEMES:
        raise BrowserActionError(
            f"ValueError: {scheme}: addresses do not open as a page. Use http://, https://, "
            "file:// or data:, and the other calls to act on the page."
        )
    return url


def _upload_paths(file: str | list[str], cwd: str) -> list[str]:
    """Check the files of an upload, or the one folder."""
    named = [file] if isinstance(file, str) else file
    paths = [Path(cwd) / Path(item).expanduser() for item in named]
    for path in paths:
        if not path.is_file() and not (path.is_dir() and len(paths) == 1):
            raise BrowserActionError(
                f"FileNotFoundError: there is no file {str(path)!r} to upload. Use the absolute "
                "path of a file; a folder goes alone, and into an input for folders."
            )
    return [str(path.resolve()) for path in paths]


async def _performed(work: Awaitable[None]) -> None:
    """Wait for an action on an element; one that was performed is done, however slow the page.

    The time limit is for reaching the element. When its events are on their way to the page,
    handlers that take long or open dialogs hold back the answer, and not the action.
    """
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    try:
        await work
    except PlaywrightTimeoutError as error:
        if not _PERFORMED.search(error.message.rstrip()):
            raise


async def _done_or(work: Awaitable[Any], is_done: Callable[[], Awaitable[bool]]) -> None:
    """Wait for an action whose log does not tell that it was performed; then ask the page."""
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    try:
        await work
    except PlaywrightTimeoutError as error:
        if "element is not " in error.message or not await is_done():
            raise


async def _click(
    page: Page, session: BrowserSession, bid: str, button: Any, modifiers: list[Any]
) -> None:
    element = await session.element(bid)
    click = element.click(
        button=button, modifiers=modifiers, timeout=ACTIONABILITY_TIMEOUT_MS, no_wait_after=True
    )
    await _performed(click)


async def _dblclick(
    page: Page, session: BrowserSession, bid: str, button: Any, modifiers: list[Any]
) -> None:
    element = await session.element(bid)
    await _performed(
        element.dblclick(button=button, modifiers=modifiers, timeout=ACTIONABILITY_TIMEOUT_MS)
    )


async def _fill(
    page: Page, session: BrowserSession, bid: str, value: str, enable_autocomplete_menu: bool
) -> None:
    element = await session.element(bid)
    if not enable_autocomplete_menu:
        await _fill_element(element, value)
        return
    # Menus of suggestions listen for keys, which fill() does not press.
    await _fill_element(element, "")
    await element.focus()
    await page.keyboard.type(value)


async def _fill_element(element: ElementHandle, value: str) -> None:
    async def is_filled() -> bool:
        return bool(await element.evaluate("e => e.value ?? e.innerText") == value)

    await _done_or(element.fill(value, timeout=ACTIONABILITY_TIMEOUT_MS), is_filled)


async def _select_option(
    page: Page, session: BrowserSession, bid: str, options: str | list[str]
) -> None:
    element = await session.element(bid)
    wanted = [options] if isinstance(options, str) else options

    async def is_selected() -> bool:
        return bool(await element.evaluate(SELECTED_SCRIPT, wanted))

    select = element.select_option(options, timeout=ACTIONABILITY_TIMEOUT_MS)
    await _done_or(select, is_selected)


async def _hover(page: Page, session: BrowserSession, bid: str) -> None:
    element = await session.element(bid)
    await _performed(element.hover(timeout=ACTIONABILITY_TIMEOUT_MS))


async def _press(page: Page, session: BrowserSession, bid: str, key_comb: str) -> None:
    element = await session.element(bid)
    # Nothing has to be reached: what takes long are the page's own handlers.
    await element.press(key_comb, timeout=0, no_wait_after=True)


async def _focus(page: Page, session: BrowserSession, bid: str) -> None:
    await (await session.element(bid)).focus()


async def _clear(page: Page, session: BrowserSession, bid: str) -> None:
    await _fill_element(await session.element(bid), "")


async def _check(page: Page, session: BrowserSession, bid: str) -> None:
    element = await session.element(bid)
    await _done_or(element.check(timeout=ACTIONABILITY_TIMEOUT_MS), element.is_checked)


async def _uncheck(page: Page, session: BrowserSession, bid: str) -> None:
    element = await session.element(bid)

    async def is_unchecked() -> bool:
        return not await element.is_checked()

    await _done_or(element.uncheck(timeout=ACTIONABILITY_TIMEOUT_MS), is_unchecked)


async def _drag_and_drop(page: Page, session: BrowserSession, from_bid: str, to_bid: str) -> None:
    source, target = await session.element(from_bid), await session.element(to_bid)
    await _performed(source.hover(timeout=ACTIONABILITY_TIMEOUT_MS))
    await page.mouse.down()
    try:
        # A page learns of a drag from the second move over the target.
        for _ in range(2):
            await _performed(target.hover(timeout=ACTIONABILITY_TIMEOUT_MS))
    finally:
        await page.mouse.up()


async def _upload_file(
    page: Page, session: BrowserSession, bid: str, file: str | list[str]
) -> None:
    paths = _upload_paths(file, session.cwd)
    element = await session.element(bid)
    if await element.evaluate("e => e instanceof HTMLInputElement && e.type === 'file'"):
        await element.set_input_files(paths, timeout=UPLOAD_TIMEOUT_MS)
        return
    await _choose_files(
        page,
        session,
        paths,
        _performed(element.click(timeout=ACTIONABILITY_TIMEOUT_MS, no_wait_after=True)),
    )


async def _choose_files(
    page: Page, session: BrowserSession, paths: list[str], click: Awaitable[None]
) -> None:
    """Answer the file chooser that a click opens."""
    with session.answering_file_choosers():
        async with page.expect_file_chooser(timeout=UPLOAD_TIMEOUT_MS) as chooser:
            await click
        await (await chooser.value).set_files(paths)


async def _scroll(page: Page, session: BrowserSession, delta_x: float, delta_y: float) -> None:
    await page.mouse.wheel(delta_x, delta_y)


async def _scroll_at(
    page: Page, session: BrowserSession, x: float, y: float, dx: float, dy: float
) -> None:
    await page.mouse.move(x, y)
    await page.mouse.wheel(dx, dy)


async def _mouse_move(page: Page, session: BrowserSession, x: float, y: float) -> None:
    await page.mouse.move(x, y)


async def _mouse_up(page: Page, session: BrowserSession, x: float, y: float, button: Any) -> None:
    await page.mouse.move(x, y)
    await page.mouse.up(button=button)


async def _mouse_down(page: Page, session: BrowserSession, x: float, y: float, button: Any) -> None:
    await page.mouse.move(x, y)
    await page.mouse.down(button=button)


async def _mouse_click(
    page: Page, session: BrowserSession, x: float, y: float, button: Any
) -> None:
    await page.mouse.click(x, y, button=button)


async def _mouse_dblclick(
    page: Page, session: BrowserSession, x: float, y: float, button: Any
) -> None:
    await page.mouse.dblclick(x, y, button=button)


async def _mouse_drag_and_drop(
    page: Page, session: BrowserSession, from_x: float, from_y: float, to_x: float, to_y: float
) -> None:
    await page.mouse.move(from_x, from_y)
    await page.mouse.down()
    await page.mouse.move(to_x, to_y, steps=2)
    await page.mouse.up()


async def _mouse_upload_file(
    page: Page, session: BrowserSession, x: float, y: float, file: str | list[str]
) -> None:
    paths = _upload_paths(file, session.cwd)
    await _choose_files(page, session, paths, page.mouse.click(x, y))


async def _keyboard_down(page: Page, session: BrowserSession, key: str) -> None:
    await page.keyboard.down(key)


async def _keyboard_up(page: Page, session: BrowserSession, key: str) -> None:
    await page.keyboard.up(key)


async def _keyboard_press(page: Page, session: BrowserSession, key: str) -> None:
    await page.keyboard.press(key)


async def _keyboard_type(page: Page, session: BrowserSession, text: str) -> None:
    await page.keyboard.type(text)


async def _keyboard_insert_text(page: Page, session: BrowserSession, text: str) -> None:
    await page.keyboard.insert_text(text)


async def _goto(page: Page, session: BrowserSession, url: str) -> None:
    address = _checked_url(url)
    is_pdf = urlsplit(address).scheme == "file" and address.lower().endswith(".pdf")
    if is_pdf:
        # Only for this moment: with routes, a browser does not use its cache.
        await page.route("file://**", show_pdf)
    try:
        # "commit": what comes after the answer is waited for like after any other action.
        await page.goto(address, wait_until="commit", timeout=NAVIGATION_TIMEOUT_MS)
    except Exception:
        # It would go on behind the error that is reported, and block the page.
        await session.stop_loading()
        raise
    finally:
        if is_pdf:
            await page.unroute("file://**", show_pdf)


async def _go_back(page: Page, session: BrowserSession) -> None:
    await page.go_back(wait_until="commit", timeout=NAVIGATION_TIMEOUT_MS)


async def _go_forward(page: Page, session: BrowserSession) -> None:
    await page.go_forward(wait_until="commit", timeout=NAVIGATION_TIMEOUT_MS)


async def _new_tab(session: BrowserSession) -> None:
    if len(session.tabs) >= MAX_TABS:
        raise BrowserActionError(
            f"RuntimeError: {MAX_TABS} tabs are open already. Close one with tab_close()."
        )
    await session.open_tab()


async def _tab_close(session: BrowserSession) -> None:
    await session.close_tab()


async def _tab_focus(session: BrowserSession, index: int) -> None:
    await session.focus_tab(index)


async def _send_msg_to_user(session: BrowserSession, text: str) -> None:
    session.add_message("assistant", text)


async def _report_infeasible(session: BrowserSession, reason: str) -> None:
    session.add_message("infeasible", reason)


async def _noop(session: BrowserSession, wait_ms: float) -> None:
    await asyncio.sleep(max(0.0, wait_ms) / 1000)


Handler = Callable[..., Awaitable[None]]

_ELEMENT_HANDLERS: dict[str, Handler] = {
    "click": _click,
    "dblclick": _dblclick,
    "fill": _fill,
    "select_option": _select_option,
    "hover": _hover,
    "press": _press,
    "focus": _focus,
    "clear": _clear,
    "check": _check,
    "uncheck": _uncheck,
    "drag_and_drop": _drag_and_drop,
    "upload_file": _upload_file,
}
_PAGE_HANDLERS: dict[str, Handler] = {
    "scroll": _scroll,
    "scroll_at": _scroll_at,
    "mouse_move": _mouse_move,
    "mouse_up": _mouse_up,
    "mouse_down": _mouse_down,
    "mouse_click": _mouse_click,
    "mouse_dblclick": _mouse_dblclick,
    "mouse_drag_and_drop": _mouse_drag_and_drop,
    "mouse_upload_file": _mouse_upload_file,
    "keyboard_down": _keyboard_down,
    "keyboard_up": _keyboard_up,
    "keyboard_press": _keyboard_press,
    "keyboard_type": _keyboard_type,
    "keyboard_insert_text": _keyboard_insert_text,
    "goto": _goto,
    "go_back": _go_back,
    "go_forward": _go_forward,
}
_SESSION_HANDLERS: dict[str, Handler] = {
    "new_tab": _new_tab,
    "tab_close": _tab_close,
    "tab_focus": _tab_focus,
    "send_msg_to_user": _send_msg_to_user,
    "report_infeasible": _report_infeasible,
    "noop": _noop,
}
