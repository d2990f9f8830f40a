"""Execution of action-language calls on the session's active page."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oh_jupyter.browser.channel.addresses import typed_address
from oh_jupyter.browser.channel.language import Call
from oh_jupyter.browser.worker.pdf_view import show_pdf
from oh_jupyter.browser.worker.session import MAX_TABS, BrowserSession
from oh_jupyter.errors import BrowserActionError
from oh_jupyter.text import shorten

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

ACTIONABILITY_TIMEOUT_MS = 500
"""Milliseconds to wait for an element to become actionable."""
BUSY_PAGE_TIMEOUT_MS = 10_000
"""The same timeout when nothing blocks the element, so that the page or the machine is busy."""
NAVIGATION_TIMEOUT_MS = 30_000
"""Milliseconds to wait for the server's response to a navigation."""
COMMIT: dict[str, Any] = {"wait_until": "commit", "timeout": NAVIGATION_TIMEOUT_MS}
LATE_ERROR_PAGE = 'is interrupted by another navigation to "chrome-error:'
UPLOAD_TIMEOUT_MS = 5_000
_PERFORMED = re.compile(r"- (performing \w+ action|\w+ action done)[^\n]*\Z")
"""End of Playwright's log for an action whose input events were sent."""
CAUSE_PATTERNS = (
    (r"(<[^\n]*?>)(?: from (<[^\n]*?>) subtree)? intercepts pointer events",
     "it is covered by another element: {0} intercepts pointer events. Close or use that element, "
     "or scroll"),
    (r"element is not visible",
     "element is not visible. Open the menu or section that contains it, or use another element"),
    (r"element is not enabled",
     "element is not enabled: it is disabled. Complete the steps that enable it first"),
    (r"element is not editable", "element is not editable: it is read-only"),
    (r"did not find some options",
     "the select has no such option (value or label). Read its options in the tree"),
    (r"Element is not an <input>, <textarea>",
     "Element is not an <input>, <textarea> or [contenteditable] element: it accepts no text"),
    (r"(Element is not a <select> element)", "{0}: click(bid) opens a menu of another kind"),
    (r"(Element is not an? [^\n]*)", "{0}"),
    (r'(Input of type "file" cannot be filled)', "{0}: use upload_file(bid, path)"),
    (r'(Input of type "(?:checkbox|radio)" cannot be filled)', "{0}: use check(bid)"),
    (r'(Input of type "(?:button|submit|reset|image)" cannot be filled)', "{0}: use click(bid)"),
    (r"(Cannot type text into input\[type=number\])", "{0}: it accepts numbers, such as 3.5"),
    (r"(File input does not support directories[^\n]*|\[webkitdirectory\] input[^\n]*)", "{0}"),
    (r"(Not a checkbox or radio button)", "{0}"),
    (r"(Clicking the checkbox did not change its state)", "{0}"),
    (r"element is outside of the viewport",
     "element is outside of the viewport and cannot be scrolled into it"),
    (r"not attached to the DOM", "the element was removed from the page meanwhile"),
    (r"element is not stable", "element is not stable: it keeps moving"),
    (r'(Unknown key: "[^\n]*")', '{0}. Examples: "Enter", "a", "Control+a", "Shift+Tab"'),
    (r"(net::ERR_BLOCKED_BY_CLIENT)", "{0}: its origin is not allowed in this browser"),
    (r"(net::ERR_NAME_NOT_RESOLVED)", "{0}: no host of that name is known, or there is no network"),
    (r"(net::ERR_CONNECTION_REFUSED)", "{0}: nothing listens at that host and port"),
    (r"(net::ERR_UNSAFE_PORT)", "{0}: browsers do not use that port"),
    (r"(net::ERR_FILE_NOT_FOUND)", "{0}: there is no such file"),
    (r"(net::ERR_INVALID_AUTH_CREDENTIALS)",
     "{0}: the server requires a user name and a password (401). Put them into the address, as in "
     "https://name:password@host/, or start the browser with a logged-in storage state"),
    (r"(net::ERR_ABORTED)",
     "{0}: the server sent no page, as with 204 No Content, or the request was cut off; the "
     "previous page stays"),
    (r"(net::ERR_CERT_\w+)",
     "{0}: the browser does not trust the server's certificate. Check the address; for your own "
     "server use http://, or trust its certificate on this machine"),
    (r"(net::ERR_SSL_\w+)", "{0}: no secure connection; the server may expect http://"),
    (r"(net::ERR_\w+)", "{0}"),
    (r"(Download is starting)", "{0}: the address is a download, and the download failed"),
    (r"not available in an isolated browser context",
     "this internal page of the browser needs a profile (user_data_dir)"),
    (r"Cannot navigate to invalid URL", "it is not a valid address: check host and port"),
)  # fmt: skip
FORMATS = {
    "date": "2026-03-04",
    "time": "17:05",
    "datetime-local": "2026-03-04T17:05",
    "month": "2026-03",
    "week": "2026-W10",
    "color": "#00aaff",
}
"""Example of the value format of each field type."""
FIELD_SCRIPT = """e => 'value' in e && {
  value: e.value, tag: e.localName, type: e.type, limit: e.maxLength, min: e.min, max: e.max,
}"""
PREPARED_FIELD_SCRIPT = """(e, [wanted, types]) => {
  const field = {value: e.value ?? '', tag: e.localName, type: e.type, tried: null};
  if (e instanceof HTMLInputElement && types.includes(e.type)) {
    const copy = e.cloneNode(false);
    copy.value = wanted;
    field.tried = copy.value;
  }
  return field;
}"""
FIELD_KIND_SCRIPT = """e => e instanceof HTMLInputElement ? e.type :
  e instanceof HTMLElement && e.isContentEditable ? 'text' : e.localName"""
TEXT_KINDS = frozenset(
    {"date", "email", "number", "password", "search", "select", "tel", "text", "textarea", "url"}
)
UPLOAD_ADVICE = "Use the bid of a file input, or of an element that opens a file chooser."
SELECTED_SCRIPT = """(e, wanted) => {
  const chosen = [...(e.selectedOptions ?? [])].flatMap(o => [o.value, o.label]);
  return wanted.every(text => chosen.includes(text));
}"""


async def perform(call: Call, session: BrowserSession) -> None:
    """Carry out one call."""
    from playwright.async_api import Error

    try:
        await _HANDLERS[call.name](session, **call.arguments)
    except BrowserActionError as error:
        raise BrowserActionError(f"{error} In: {_call_label(call)}") from None
    except Error as error:
        cause = error_cause(type(error).__name__, error.message)
        raise BrowserActionError(f"{cause} In: {_call_label(call)}") from error


def _call_label(call: Call) -> str:
    return shorten(" ".join(call.source.split()) or call.name, 120)


NAVIGABLE_SCHEMES = frozenset({"about", "blob", "chrome", "data", "file", "http", "https"})
"""Schemes that open a page; others run a script, start a program, or hide their content."""


def _checked_url(url: str, cwd: str) -> str:
    """Return the URL of a goto address, which may be typed as in an address bar."""
    url = typed_address(url.strip(), cwd)
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise BrowserActionError(f"ValueError: {url!r} is not a valid address: {error}.") from None
    if not scheme or (len(scheme) == 1 and url[1:3] == ":\\"):
        raise BrowserActionError(
            f"ValueError: {url!r} is not an absolute address, and no file has that name. "
            "Start with a scheme, such as https:// or file://."
        )
    if scheme not in NAVIGABLE_SCHEMES:
        raise BrowserActionError(
            f"ValueError: {scheme}: addresses do not open as a page. Use http://, https://, "
            "file:// or data:, and the other calls to act on the page."
        )
    return url


def _upload_paths(file: str | list[str], session: BrowserSession) -> list[str]:
    """Return the absolute paths of the files, or of the one folder, of an upload."""
    names = [file] if isinstance(file, str) else file
    paths = [Path(session.cwd) / Path(name).expanduser() for name in names]
    for path in paths:
        if not path.is_file() and not (path.is_dir() and len(paths) == 1):
            raise BrowserActionError(
                f"FileNotFoundError: there is no file {str(path)!r} to upload. Use the absolute "
                "path of a file; upload a folder by itself, to an input that accepts folders."
            )
    try:
        return [session.local_files.uploaded(path) for path in paths]
    except OSError as error:
        raise BrowserActionError(
            f"PermissionError: {paths[0]} was not uploaded: {error.strerror or error}."
        ) from None


async def _act(
    act: Callable[..., Awaitable[Any]],
    is_done: Callable[[], Awaitable[bool]] | None = None,
    **options: Any,
) -> None:
    """Act on an element; succeed once the action is performed, however slowly the page responds.

    The timeout covers reaching the element. Once the input events are sent, a slow handler or a
    dialog delays only the response, not the action. If Playwright's log shows neither that the
    action was performed nor an obstacle, retry with a longer timeout.
    """
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    for timeout_ms in (ACTIONABILITY_TIMEOUT_MS, BUSY_PAGE_TIMEOUT_MS):
        try:
            await act(timeout=timeout_ms, **options)
        except PlaywrightTimeoutError as error:
            message = error.message.rstrip()
            is_blocked = any(re.search(pattern, message) for pattern, _ in CAUSE_PATTERNS)
            if _PERFORMED.search(message):
                return
            if is_done is not None and not is_blocked and await is_done():
                return
            if is_blocked or "performing" in message or timeout_ms == BUSY_PAGE_TIMEOUT_MS:
                raise
        else:
            return


async def _click(session: BrowserSession, bid: str, button: Any, modifiers: list[Any]) -> None:
    element = await session.element(bid)
    await _act(element.click, button=button, modifiers=modifiers, no_wait_after=True)


async def _dblclick(session: BrowserSession, bid: str, button: Any, modifiers: list[Any]) -> None:
    element = await session.element(bid)
    await _act(element.dblclick, button=button, modifiers=modifiers)


async def _fill(
    session: BrowserSession, bid: str, value: str, enable_autocomplete_menu: bool = False
) -> None:
    element = await session.element(bid)
    await _check_fillable(element, bid, value)
    # Autocomplete menus listen for key events, which fill() does not send.
    initial = "" if enable_autocomplete_menu else value

    async def is_filled() -> bool:
        return bool(await element.evaluate("e => e.value ?? e.innerText") == initial)

    await _act(element.fill, is_filled, value=initial)
    if enable_autocomplete_menu:
        await element.focus()
        await session.page.keyboard.type(value)
    await _check_filled(element, value)


async def _check_fillable(element: ElementHandle, bid: str, value: str) -> None:
    """Raise an error for a select, and for a value that a date and the like would lose.

    The browser itself decides, in a copy of the field: the field keeps its value.
    """
    try:
        field = await element.evaluate(PREPARED_FIELD_SCRIPT, [value, list(FORMATS)])
    except Exception:  # the page navigates, or has removed the field
        return
    if field["tag"] == "select":
        raise BrowserActionError(
            "Error: Locator.fill: Element is not an <input>, <textarea> or [contenteditable] "
            f"element: it is a <select>. Use select_option({bid!r}, 'OPTION')."
        )
    if field["tried"] is not None and not _has_accepted({**field, "value": field["tried"]}, value):
        raise _unaccepted(field["value"], _format_advice(field["type"]))


def _format_advice(kind: str) -> str:
    return f"write a {kind} as {FORMATS[kind]}"


def _unaccepted(value: str, advice: str) -> BrowserActionError:
    return BrowserActionError(
        f"ValueError: the field did not accept the value and now holds {value[:200]!r}: {advice}."
    )


async def _check_filled(element: ElementHandle, expected: str) -> None:
    """Read a field back and raise an error if it holds another value."""
    try:
        field = await element.evaluate(FIELD_SCRIPT)
    except Exception:  # the page navigates, or has removed the field
        return
    if not field or _has_accepted(field, expected):
        return
    if field["tag"] == "textarea" and not field["value"]:
        # An editor consumes its input from an empty textarea.
        return
    advice = "the page changes or rejects unwanted values"
    if field["type"] in FORMATS:
        advice = _format_advice(field["type"])
    elif field["type"] == "range":
        advice = f"it accepts numbers from {field['min'] or 0} to {field['max'] or 100}"
    elif 0 <= field["limit"] < len(expected):
        advice = f"it accepts at most {field['limit']} characters"
    raise _unaccepted(field["value"], advice)


def _has_accepted(field: Mapping[str, Any], expected: str) -> bool:
    """Return whether a field holds the expected letters and digits, in whatever format."""
    value = field["value"]
    if field["type"] == "range":
        with contextlib.suppress(ValueError):
            return float(value) == float(expected)
        return False
    wanted, actual = (re.sub(r"[\W_]", "", text).casefold() for text in (expected, value))
    return wanted in actual if wanted else bool(value) == bool(expected)


async def _select_option(session: BrowserSession, bid: str, options: str | list[str]) -> None:
    element = await session.element(bid)
    expected = [options] if isinstance(options, str) else options

    async def is_selected() -> bool:
        return bool(await element.evaluate(SELECTED_SCRIPT, expected))

    await _act(element.select_option, is_selected, value=options)


async def _hover(session: BrowserSession, bid: str) -> None:
    element = await session.element(bid)
    await _act(element.hover)


async def _press(session: BrowserSession, bid: str, key_comb: str) -> None:
    element = await session.element(bid)
    # No timeout: a key press needs no actionable element, only the page's handlers take time.
    await element.press(key_comb, timeout=0, no_wait_after=True)


async def _focus(session: BrowserSession, bid: str) -> None:
    await (await session.element(bid)).focus()


async def _set_checked(session: BrowserSession, bid: str, *, checked: bool) -> None:
    element = await session.element(bid)

    async def is_set() -> bool:
        return await element.is_checked() is checked

    change = element.check if checked else element.uncheck
    await _act(change, is_set)


async def _drag_and_drop(session: BrowserSession, from_bid: str, to_bid: str) -> None:
    source, target = await session.element(from_bid), await session.element(to_bid)
    mouse = session.page.mouse
    await _act(source.hover)
    await mouse.down()
    try:
        # The page receives the drag event with the second move over the target.
        for _ in range(2):
            await _act(target.hover)
    finally:
        await mouse.up()


async def _upload_file(session: BrowserSession, bid: str, file: str | list[str]) -> None:
    paths = _upload_paths(file, session)
    element = await session.element(bid)
    kind = await element.evaluate(FIELD_KIND_SCRIPT)
    if kind == "file":
        await element.set_input_files(paths, timeout=UPLOAD_TIMEOUT_MS)
        return
    if kind in TEXT_KINDS:
        raise BrowserActionError(
            f"ValueError: the element is a field of type {kind} and accepts no file. "
            f"{UPLOAD_ADVICE}"
        )
    await _choose_files(session, paths, _act(element.click, no_wait_after=True))


async def _mouse_upload_file(
    session: BrowserSession, x: float, y: float, file: str | list[str]
) -> None:
    paths = _upload_paths(file, session)
    await _choose_files(session, paths, session.page.mouse.click(x, y))


async def _choose_files(session: BrowserSession, paths: list[str], click: Awaitable[None]) -> None:
    """Click and select files in the file chooser that opens."""
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    with session.answering_file_choosers():
        try:
            async with session.page.expect_file_chooser(timeout=UPLOAD_TIMEOUT_MS) as chooser:
                await click
            chosen = await chooser.value
        except PlaywrightTimeoutError as error:
            if "filechooser" not in error.message:
                raise
            raise BrowserActionError(
                f"TimeoutError: the click opened no file chooser. {UPLOAD_ADVICE}"
            ) from error
        await chosen.set_files(paths)


async def _scroll_at(session: BrowserSession, x: float, y: float, dx: float, dy: float) -> None:
    await session.page.mouse.move(x, y)
    await session.page.mouse.wheel(dx, dy)


async def _mouse_up(session: BrowserSession, x: float, y: float, button: Any) -> None:
    await session.page.mouse.move(x, y)
    await session.page.mouse.up(button=button)


async def _mouse_down(session: BrowserSession, x: float, y: float, button: Any) -> None:
    await session.page.mouse.move(x, y)
    await session.page.mouse.down(button=button)


async def _mouse_drag_and_drop(
    session: BrowserSession, from_x: float, from_y: float, to_x: float, to_y: float
) -> None:
    mouse = session.page.mouse
    await mouse.move(from_x, from_y)
    await mouse.down()
    await mouse.move(to_x, to_y, steps=2)
    await mouse.up()


async def _goto(session: BrowserSession, url: str) -> None:
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    address, page = _checked_url(url, session.cwd), session.page
    is_answered = await session.local_files.prepare(session.context, address)
    is_local = urlsplit(address).scheme == "file" and not is_answered
    is_pdf = is_local and address.lower().endswith(".pdf")
    if is_pdf:
        # Route only during this navigation: a browser with routes does not use its cache.
        await page.route("file://**", show_pdf)
    try:
        await _navigate(page, address)
    except PlaywrightTimeoutError:
        # The navigation would continue after the reported error and block the page. Never stop a
        # navigation that failed otherwise: the browser would not draw its error page.
        await session.stop_loading()
        raise
    finally:
        if is_pdf:
            await page.unroute("file://**", show_pdf)


async def _navigate(page: Page, address: str) -> None:
    """Start a navigation; the step then waits for the page as it does after any other action."""
    from playwright.async_api import Error

    try:
        await page.goto(address, **COMMIT)
    except Error as error:
        # The browser's error page for an earlier navigation may arrive only now.
        if LATE_ERROR_PAGE not in str(error):
            raise
        await page.goto(address, **COMMIT)


async def _travel(session: BrowserSession, navigation: Coroutine[Any, Any, Any]) -> None:
    """Await a step in the history, unless the page asks before it is left, and stays."""
    # Playwright would wait for the prevented navigation until its timeout.
    travel = asyncio.ensure_future(navigation)
    stay = asyncio.ensure_future(session.dialogs.until_kept())
    try:
        await asyncio.wait((travel, stay), return_when=asyncio.FIRST_COMPLETED)
        if travel.done():
            travel.result()
    finally:
        travel.cancel()
        stay.cancel()


async def _new_tab(session: BrowserSession) -> None:
    if len(session.tabs) >= MAX_TABS:
        raise BrowserActionError(
            f"RuntimeError: {MAX_TABS} tabs are open already. Close one with tab_close()."
        )
    await session.open_tab()


async def _send_msg_to_user(session: BrowserSession, text: str) -> None:
    session.add_message("assistant", text)


async def _report_infeasible(session: BrowserSession, reason: str) -> None:
    session.add_message("infeasible", reason)


async def _page_text(session: BrowserSession, start: int) -> None:
    session.text_start = start


async def _find(session: BrowserSession, text: str) -> None:
    match = await (await session.inspector()).find(text) if text else None
    if match is None:
        raise BrowserActionError(f"ValueError: the text {text!r} is not on the page.")
    number, count = match
    session.notices.append(
        f"{text!r}: match {number} of {count} is in view; repeat the call for the next match."
    )


async def _handle_dialog(session: BrowserSession, accept: bool, text: str) -> None:
    session.dialogs.prepare(accept, text)


async def _noop(session: BrowserSession, wait_ms: float) -> None:
    await asyncio.sleep(max(0.0, wait_ms) / 1000)


_HANDLERS: dict[str, Callable[..., Awaitable[Any]]] = {
    "click": _click,
    "dblclick": _dblclick,
    "fill": _fill,
    "select_option": _select_option,
    "hover": _hover,
    "press": _press,
    "focus": _focus,
    "clear": partial(_fill, value=""),
    "check": partial(_set_checked, checked=True),
    "uncheck": partial(_set_checked, checked=False),
    "drag_and_drop": _drag_and_drop,
    "upload_file": _upload_file,
    "scroll_at": _scroll_at,
    "mouse_up": _mouse_up,
    "mouse_down": _mouse_down,
    "mouse_drag_and_drop": _mouse_drag_and_drop,
    "mouse_upload_file": _mouse_upload_file,
    "goto": _goto,
    "new_tab": _new_tab,
    "tab_close": BrowserSession.close_tab,
    "tab_focus": BrowserSession.focus_tab,
    "send_msg_to_user": _send_msg_to_user,
    "report_infeasible": _report_infeasible,
    "noop": _noop,
    "handle_dialog": _handle_dialog,
    "page_text": _page_text,
    "find": _find,
    # These forward to Playwright methods with the same argument names.
    "scroll": lambda session, **deltas: session.page.mouse.wheel(**deltas),
    "mouse_move": lambda session, **point: session.page.mouse.move(**point),
    "mouse_click": lambda session, **options: session.page.mouse.click(**options),
    "mouse_dblclick": lambda session, **options: session.page.mouse.dblclick(**options),
    "keyboard_down": lambda session, key: session.page.keyboard.down(key),
    "keyboard_up": lambda session, key: session.page.keyboard.up(key),
    "keyboard_press": lambda session, key: session.page.keyboard.press(key),
    "keyboard_type": lambda session, text: session.page.keyboard.type(text),
    "keyboard_insert_text": lambda session, text: session.page.keyboard.insert_text(text),
    "go_back": lambda session: _travel(session, session.page.go_back(**COMMIT)),
    "go_forward": lambda session: _travel(session, session.page.go_forward(**COMMIT)),
}


def error_cause(kind: str, message: str) -> str:
    """Format a Playwright error: type and call as BrowserGym writes them, and the cause."""
    header = re.match(r"(?:(\w+)\.(\w+): )?((?:Timeout \d+ms exceeded\.)?)", message)
    assert header is not None  # every part of the pattern is optional
    owner, method, timeout = header.groups()
    # BrowserGym acts on locators.
    owner = "Locator" if owner == "ElementHandle" else owner
    method_name = f"{owner}.{method}: " if owner else ""
    prefix = f"{kind}: {method_name}{timeout}{' ' if timeout else ''}"
    for pattern, text in CAUSE_PATTERNS:
        match = re.search(pattern, message)
        if match:
            excerpts = [group[:200] for group in match.groups() if group]
            return f"{prefix}{text.format(*excerpts)}."
    if timeout and method == "goto":
        return f"{prefix}The server did not respond in time."
    rest = message[header.end() :].split("\nCall log:")[0].strip()
    return f"{prefix}{rest.removesuffix('.')}."
