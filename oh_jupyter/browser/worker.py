"""The worker process: a browser behind a pipe.

Reads requests from standard input and writes answers to standard output, as frames of
``pipe``. One step runs at a time; pings and cancellations are answered meanwhile. The end of
the input means that the parent is gone: the browser is closed and the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from typing import Any

from oh_jupyter.browser.actions import perform
from oh_jupyter.browser.language import Call, parse_actions
from oh_jupyter.browser.launch import Settings
from oh_jupyter.browser.observation import observe
from oh_jupyter.browser.pipe import read_frame, write_frame
from oh_jupyter.browser.session import BrowserSession
from oh_jupyter.browser.settle import NAVIGATION, PageUnresponsiveError
from oh_jupyter.errors import BrowserActionError

__all__ = ["main"]

CLOSING = 5.0
"""Seconds that the browser has for closing."""
DOWNLOADS = 15.0
"""Seconds that a step waits for the downloads it has set off."""
IDLE = frozenset({"noop", "send_msg_to_user", "report_infeasible"})
SLOW = 3.0
"""Seconds after which it is asked whether the page still answers."""
ATTEMPTS = 4
"""How often a page is looked at that goes on to another page meanwhile."""


async def run_step(session: BrowserSession, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out an action string and observe what came of it.

    Args:
        session: The browser.
        request: ``action``, ``include`` and ``limit`` (seconds for the calls).

    Returns:
        The observation.
    """
    started = time.monotonic()
    session.notices.clear()
    session.losses.clear()
    await session.ensure_page()
    if session.tracker.navigates(session.page):
        # Left behind by a step that was cancelled.
        await session.stop_loading()
    session.tracker.begin()
    error = await _act(session, request["action"], request["limit"])
    elapsed = time.monotonic() - started
    observation = await _observe_settled(session, request["include"], _is_idle(request["action"]))
    error = " ".join(filter(None, [error, *session.losses]))
    observation["last_action"] = request["action"]
    observation["last_action_error"] = error
    observation["elapsed_time"] = elapsed
    observation["notices"] = [*session.losses, *session.notices]
    observation["downloads"] = session.downloads[:]
    session.downloads.clear()
    return observation


async def _act(session: BrowserSession, action: str, limit: float) -> str:
    """Carry out the calls; return why one failed, or ""."""
    try:
        calls = parse_actions(action)
        async with asyncio.timeout(limit):
            for number, call in enumerate(calls):
                if number:
                    # What the last call has opened or loaded is what the next one is for.
                    await session.tracker.navigated(session.page)
                    await session.ensure_page()
                await _perform_watched(call, session)
    except BrowserActionError as error:
        if "ERR_ABORTED" in str(error) or "Download is starting" in str(error):
            await session.downloads_finished(DOWNLOADS)
            if session.downloads:
                return ""
        return str(error)
    except TimeoutError:
        await session.stop_loading()
        session.tracker.begin()
        return f"The action took longer than {limit:g} s and was given up."
    return ""


async def _perform_watched(call: Call, session: BrowserSession) -> None:
    """Carry out a call; stop the page's scripts if they never let it end."""
    task = asyncio.ensure_future(perform(call, session))
    try:
        while not (await asyncio.wait([task], timeout=SLOW))[0]:
            if session.tracker.navigates(session.page):
                continue
            if not await session.responds(SLOW) and not task.done():
                await session.stop_scripts()
                await asyncio.wait([task], timeout=SLOW)
                break
    finally:
        if not task.done():
            task.cancel()
    if task.done() and not task.cancelled():
        task.result()


def _is_idle(action: str) -> bool:
    """Tell whether an action does nothing to the page."""
    try:
        return all(call.name in IDLE for call in parse_actions(action))
    except BrowserActionError:
        return True


async def _observe_settled(
    session: BrowserSession, include: list[str], idle: bool
) -> dict[str, Any]:
    """Wait for the effects of the action, and look; again if the page goes on meanwhile."""
    from playwright.async_api import Error

    for attempt in range(ATTEMPTS):
        try:
            await session.ensure_page()
            if not await session.tracker.settle(session.page, idle=idle and attempt == 0):
                await session.stop_loading()
                session.losses.append(
                    f"The navigation was not answered within {NAVIGATION:g} s and was stopped."
                )
                session.tracker.begin()
            await session.downloads_finished(DOWNLOADS)
            await session.ensure_page()
            await session.keep_viewed_pdf()
            return await observe(session, include)
        except PageUnresponsiveError:
            await session.stop_scripts()
        except Error:
            if attempt == ATTEMPTS - 1 or not session.browser.is_connected():
                raise
    return await observe(session, include)


class Worker:
    """Answers requests, one step at a time.

    Attributes:
        session: The browser.
    """

    def __init__(self, session: BrowserSession, output: int) -> None:
        self.session = session
        self._output = output
        self._turn = asyncio.Lock()
        self._steps: dict[int, asyncio.Task[None]] = {}

    def take(self, request: dict[str, Any]) -> None:
        """Begin to answer a request.

        Args:
            request: ``op`` and ``id``, and what the operation needs.
        """
        operation, number = request["op"], request["id"]
        if operation == "cancel":
            task = self._steps.get(request["step"])
            if task is not None:
                task.cancel()
            return
        work = self._ping(number) if operation == "ping" else self._step(number, request)
        task = asyncio.ensure_future(work)
        self._steps[number] = task
        task.add_done_callback(lambda _: self._steps.pop(number, None))

    async def _ping(self, number: int) -> None:
        # Asks the browser itself: a worker that lives with a dead browser is of no use.
        session = await self.session.browser.new_browser_cdp_session()
        await session.send("Browser.getVersion")
        await session.detach()
        write_frame(self._output, {"id": number, "result": True})

    async def _step(self, number: int, request: dict[str, Any]) -> None:
        try:
            async with self._turn:
                result = await run_step(self.session, request)
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            write_frame(self._output, {"id": number, "error": f"{type(error).__name__}: {first}"})
            return
        write_frame(self._output, {"id": number, "result": result})


async def _serve(input_: int, output: int) -> int:
    loop = asyncio.get_running_loop()
    first = read_frame(input_)
    if first is None:
        return 0
    try:
        session = await BrowserSession.start(Settings(**first["settings"]))
    except Exception as error:
        write_frame(output, {"id": first["id"], "error": str(error)})
        return 1
    ended = asyncio.Event()
    session.browser.on("disconnected", lambda _: ended.set())
    worker = Worker(session, output)

    def listen() -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while (request := read_frame(input_)) is not None:
                loop.call_soon_threadsafe(worker.take, request)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=listen, daemon=True).start()
    write_frame(output, {"id": first["id"], "result": True})
    await ended.wait()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(session.close(), CLOSING)
    return 0


def main() -> None:
    """Run the worker until its input ends or its browser does."""
    # Whatever a library prints must not get between the frames.
    output = os.dup(1)
    os.dup2(2, 1)
    code = 1
    try:
        code = asyncio.run(_serve(0, output))
    finally:
        sys.stderr.flush()
        # The listening thread may be in a blocking read, which nothing would end.
        os._exit(code)


if __name__ == "__main__":
    main()
