"""Operations of a running browser: steps, and everything else that a request can name."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from oh_jupyter.browser.channel.language import Call, parse_actions
from oh_jupyter.browser.channel.pipe import RECORDS
from oh_jupyter.browser.worker.actions import perform
from oh_jupyter.browser.worker.devtools import detach
from oh_jupyter.browser.worker.observation import observe
from oh_jupyter.browser.worker.session import BrowserSession
from oh_jupyter.browser.worker.settle import (
    NAVIGATION_TIMEOUT_SECONDS,
    NavigationLoopError,
    PageUnresponsiveError,
)
from oh_jupyter.errors import BrowserActionError, BrowserError

DOWNLOAD_TIMEOUT_SECONDS = 15.0
"""Seconds that a step waits for the downloads that it started."""
PASSIVE_ACTIONS = frozenset(
    {"handle_dialog", "noop", "page_text", "send_msg_to_user", "report_infeasible"}
)
ACTIONS_WITHOUT_LAYOUT = PASSIVE_ACTIONS | {
    "fill",
    "clear",
    "focus",
    "select_option",
    "check",
    "uncheck",
}
"""Actions that change no layout unless the page's scripts do."""
BID_PARTS = frozenset({"axtree_object", "dom_object", "extra_element_properties", "set_of_marks"})
"""Parts of an observation that contain bids."""
PROBE_SECONDS = 2.0
"""Interval in seconds at which a call checks whether the page still responds."""
PICK_COLOUR = {"r": 80, "g": 140, "b": 250, "a": 0.35}
MAX_OBSERVATION_ATTEMPTS = 4
"""Attempts to observe a page that navigates during the observation."""


async def run_step(session: BrowserSession, request: dict[str, Any]) -> dict[str, Any]:
    """Run an action string and observe its effects."""
    session.cwd = request["cwd"]
    session.local_files.begin_step(request.get("files"))
    session.text_start = 0
    session.notices.clear()
    session.losses.clear()
    session.dialogs.begin_step()
    session.saver.begin_step()
    records = [name for name in RECORDS if name in request["include"]]
    session.recorder.begin(records)
    await session.ensure_page()
    if session.tracker.navigates(session.page):
        # A cancelled step left this navigation behind.
        await session.stop_loading()
    session.tracker.begin()
    error = await _run_calls(session, request["action"], request["limit"])
    observation = await _observe_settled(session, request, _settle_mode(request["action"]))
    session.note_stopped_script()
    if session.has_crashed and "ERR_ABORTED" in error:
        error = ""
    if session.losses:
        error = " ".join([error or "Error:", *session.losses])
    observation["last_action"] = request["action"]
    observation["last_action_error"] = error
    observation["elapsed_time"] = time.monotonic() - session.started
    observation["notices"] = [*session.losses, *session.notices]
    observation["downloads"] = session.saver.saved[:]
    session.saver.saved.clear()
    return observation | session.recorder.take(records)


async def _run_calls(session: BrowserSession, action: str, limit: float) -> str:
    """Run the calls of an action; return why one failed, or ""."""
    try:
        calls = parse_actions(action)
        async with asyncio.timeout(limit):
            for number, call in enumerate(calls):
                if number:
                    # The next call acts on the page that the previous one opened or loaded.
                    await session.tracker.navigated(session.page)
                    await session.ensure_page()
                await _perform_with_watchdog(call, session)
    except BrowserActionError as error:
        return "" if await _is_explained(str(error), session) else str(error)
    except TimeoutError:
        await session.stop_loading()
        session.tracker.begin()
        return f"TimeoutError: The action took longer than {limit:g} s and was cancelled."
    return ""


async def _is_explained(error: str, session: BrowserSession) -> bool:
    """Return whether an aborted navigation is a download, or a notice already explains it."""
    if "ERR_ABORTED" not in error and "Download is starting" not in error:
        return False
    if session.dialogs.kept_page:
        return True
    await session.saver.finish_step(DOWNLOAD_TIMEOUT_SECONDS)
    # The error may arrive before the download's own event.
    is_download = "Download is starting" in error or session.saver.is_unfinished
    return bool(session.saver.saved) or (is_download and not session.saver.has_failed)


async def _perform_with_watchdog(call: Call, session: BrowserSession) -> None:
    """Run a call; stop the page's scripts if they block it."""
    task = asyncio.ensure_future(perform(call, session))
    try:
        while not (await asyncio.wait([task], timeout=PROBE_SECONDS))[0]:
            if session.tracker.navigates(session.page):
                continue
            if not await session.responds() and not task.done():
                await session.stop_scripts()
                await asyncio.wait([task], timeout=PROBE_SECONDS)
                break
    finally:
        if not task.done():
            task.cancel()
    if task.done() and not task.cancelled():
        task.result()


def _settle_mode(action: str) -> str:
    """Return the ``wait`` argument of ``settle`` after an action."""
    try:
        names = {call.name for call in parse_actions(action)}
    except BrowserActionError:
        return "none"
    if names <= PASSIVE_ACTIONS:
        return "none"
    return "turn" if names <= ACTIONS_WITHOUT_LAYOUT else "frame"


async def _observe_settled(
    session: BrowserSession, request: dict[str, Any], wait: str
) -> dict[str, Any]:
    """Wait for the effects of the action and observe; retry if the page navigates meanwhile."""
    from playwright.async_api import Error

    parts = request["include"], request.get("nearby", False)
    for attempt in range(MAX_OBSERVATION_ATTEMPTS):
        try:
            await session.ensure_page()
            if not await session.tracker.settle(session.page, wait="frame" if attempt else wait):
                await session.stop_loading()
                session.losses.append(
                    f"The server did not respond within {NAVIGATION_TIMEOUT_SECONDS:g} s; "
                    "the navigation was stopped."
                )
                session.tracker.begin()
            await session.saver.finish_step(DOWNLOAD_TIMEOUT_SECONDS)
            await session.ensure_page()
            await session.saver.keep_viewed_pdf(session.page)
            return await _observe(session, *parts)
        except PageUnresponsiveError:
            await session.stop_scripts()
        except NavigationLoopError:
            await session.leave_loop()
            session.tracker.begin()
        except Error:
            if not session.opened.is_connected():
                raise
            if attempt == MAX_OBSERVATION_ATTEMPTS - 1:
                if not session.tracker.goes_on(session.page):
                    raise
                await session.leave_loop()
                session.tracker.begin()
    return await _observe(session, *parts)


async def _observe(session: BrowserSession, include: list[str], nearby: bool) -> dict[str, Any]:
    """Observe the page, and make the bids in the observation valid for actions."""
    observation = await observe(session, include, nearby)
    if not BID_PARTS.isdisjoint(include):
        (await session.inspector()).bids.show()
    return observation


async def act(session: BrowserSession, request: dict[str, Any]) -> str:
    """Run the action string of a person watching; return why it failed, or ""."""
    session.cwd = request["cwd"]
    session.local_files.is_persons = True
    session.losses.clear()
    await session.ensure_page()
    session.tracker.begin()
    # A person acts on bids that `marks` returned since the last step.
    (await session.inspector()).bids.show()
    error = await _run_calls(session, request["action"], request["limit"])
    return " ".join([error or "Error:", *session.losses]) if session.losses else error


async def marks(session: BrowserSession, request: dict[str, Any]) -> list[dict[str, Any]]:
    """List the interactive elements in the viewport: bid, and bounding box in page pixels."""
    await session.ensure_page()
    observation = await observe(session, ["extra_element_properties"], nearby=True)
    properties = observation["extra_element_properties"].items()
    return [
        {"bid": bid, "bbox": each["bbox"]}
        for bid, each in properties
        if each["set_of_marks"] and each["bbox"] and each["visibility"] >= 0.5
    ]


async def pick(session: BrowserSession, request: dict[str, Any]) -> int:
    """Wait until a person clicks an element of the active tab; return its backend node id."""
    cdp = await session.page.context.new_cdp_session(session.page)
    picked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def resolve(event: dict[str, Any]) -> None:
        if not picked.done():
            picked.set_result(event["backendNodeId"])

    cdp.on("Overlay.inspectNodeRequested", resolve)
    try:
        await cdp.send("DOM.enable")
        await cdp.send("Overlay.enable")
        mode = {"mode": "searchForNode", "highlightConfig": {"contentColor": PICK_COLOUR}}
        await cdp.send("Overlay.setInspectMode", mode)
        return await asyncio.wait_for(picked, request["seconds"])
    except TimeoutError:
        raise BrowserError(f"No element was picked within {request['seconds']:g} s.") from None
    finally:
        # Detaching the session removes its overlay.
        await detach(cdp)


async def bid_of(session: BrowserSession, request: dict[str, Any]) -> str:
    """Look up the bid of an element of the active tab."""
    await session.ensure_page()
    inspector = await session.inspector()
    await inspector.capture(probe=False, accessibility=False)
    inspector.bids.show()
    return inspector.bids.bid_of(inspector.session, request["backend_id"])


async def watch(session: BrowserSession, request: dict[str, Any]) -> dict[str, Any]:
    """Wait for the next frame of the active tab's screencast."""
    return await session.screencast.watch(request["known"], request["seconds"])


async def evaluate(session: BrowserSession, request: dict[str, Any]) -> Any:
    """Evaluate JavaScript in the active tab."""
    from playwright.async_api import Error

    await session.ensure_page()
    try:
        return await session.page.evaluate(request["expression"], request.get("argument"))
    except Error as error:
        raise BrowserError(f"The expression failed: {error.message.splitlines()[0]}") from error


async def load(session: BrowserSession, request: dict[str, Any]) -> None:
    """Load a page in the active tab and wait for it."""
    await session.ensure_page()
    with session.dialogs.leaving():
        await _load(session, request)


async def _load(session: BrowserSession, request: dict[str, Any]) -> None:
    from playwright.async_api import Error

    try:
        if request.get("html") is not None:
            # A new document restarts the bids.
            await session.page.goto("about:blank")
            await session.page.set_content(request["html"])
        else:
            session.local_files.is_persons = True
            await session.local_files.prepare(session.context, request["url"])
            await session.page.goto(request["url"])
    except Error as error:
        raise BrowserError(error.message.splitlines()[0]) from error


async def renew(session: BrowserSession, request: dict[str, Any]) -> None:
    """Reset the browser to one blank tab, without cookies and messages."""
    tabs = session.tabs
    await session.open_tab()
    for page in tabs:
        await page.close(run_before_unload=False)
    await session.context.clear_cookies()
    session.messages.clear()
    session.saver.saved.clear()
    await session.ensure_page()


async def storage_state(session: BrowserSession, request: dict[str, Any]) -> Any:
    """Return cookies and local storage."""
    return await session.context.storage_state()


async def tabs(session: BrowserSession, request: dict[str, Any]) -> dict[str, Any]:
    """Return the open tabs, with cookies and local storage."""
    await session.ensure_page()
    pages = session.tabs
    return {
        "storage_state": await session.context.storage_state(),
        "urls": [page.url for page in pages],
        "active": pages.index(session.page),
        "files": session.local_files.state(),
    }


async def reopen(session: BrowserSession, request: dict[str, Any]) -> None:
    """Reopen tabs; a tab that does not load stays blank."""
    from playwright.async_api import Error

    session.local_files.begin_step(request["files"])
    for number, url in enumerate(request["urls"]):
        if number:
            await session.open_tab()
        with contextlib.suppress(Error, BrowserError):
            await session.local_files.prepare(session.context, url)
            await session.page.goto(url, wait_until="commit")
    await session.focus_tab(request["active"])


async def start_trace(session: BrowserSession, request: dict[str, Any]) -> None:
    """Start a Playwright trace with screenshots and snapshots of the pages."""
    await session.context.tracing.start(screenshots=True, snapshots=True)


async def stop_trace(session: BrowserSession, request: dict[str, Any]) -> None:
    """Stop the trace and write it to a file."""
    await session.context.tracing.stop(path=request["path"])
