"""A long session does not grow: what is kept after many steps is what was kept after a few."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from oh_jupyter.browser.channel.pipe import PARTS, LaunchSettings
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker import operations
from oh_jupyter.browser.worker.launch import limit_driver_memory
from oh_jupyter.browser.worker.marks import FrameBids
from oh_jupyter.browser.worker.operations import run_step
from oh_jupyter.browser.worker.session import DOCUMENTS_PER_COLLECTION, BrowserSession
from oh_jupyter.browser.worker.settle import MAX_ADDRESSES

pytestmark = pytest.mark.browser

LIMIT = 1000
"""As in driver_limits.cjs."""


class Driven:
    """A session in this process, so that what it keeps can be counted."""

    def __init__(self, runner: asyncio.Runner, session: BrowserSession) -> None:
        self.run = runner.run
        self.session = session

    def step(self, action: str, *, fails: bool = False) -> dict[str, Any]:
        """Do what the worker does for a step."""
        seen = self.run(self._step(action))
        assert bool(seen["last_action_error"]) == fails
        return seen

    async def _step(self, action: str) -> dict[str, Any]:
        request = {"action": action, "include": list(PARTS), "limit": 60.0, "cwd": "/"}
        seen = await run_step(self.session, request)
        await self.session.release_resources()
        return seen

    def kept(self) -> Counter[str]:
        """Count what Playwright keeps, by kind; it has no public way to ask."""
        connection: Any = self.session.context._impl_obj._connection
        return Counter(each._type for each in connection._objects.values())


@pytest.fixture
def driven(tmp_path, monkeypatch) -> Iterator[Driven]:
    monkeypatch.setenv("NODE_OPTIONS", "")
    limit_driver_memory()
    settings = LaunchSettings(
        executable=find_executable(), headless=True, viewport=(800, 600),
        downloads_dir=str(tmp_path), accept_dialogs=False,
        sandbox=not hasattr(os, "geteuid") or os.geteuid() != 0,
    )  # fmt: skip
    with asyncio.Runner() as runner:
        driven = Driven(runner, runner.run(BrowserSession.start(settings)))
        yield driven
        runner.run(driven.session.close())


@pytest.mark.thorough
def test_elements_are_let_go(driven: Driven, site, bid):
    inner = site.put("/inner", "<button>inner</button>")
    page = site.put("/buttons", f"<button>outer</button><iframe src={inner}></iframe>")
    seen = driven.step(f'goto("{page}")')
    outer, framed = bid(seen, "button 'outer'"), bid(seen, "button 'inner'")
    before = driven.kept()
    for _ in range(3):
        driven.step(f'focus("{outer}") focus("{framed}")')
    after = driven.kept()
    assert after["ElementHandle"] == before["ElementHandle"] == 0
    assert after["JSHandle"] == before["JSHandle"]


@pytest.mark.thorough
def test_documents_are_collected(driven: Driven, site):
    frames = "<iframe src=/tiny></iframe>" * 4
    site.put("/tiny", "<p>tiny")
    page = site.put("/four", f"<!doctype html>{frames}")
    inspector = driven.run(driven.session.inspector())
    for _ in range(DOCUMENTS_PER_COLLECTION // 5 * 3):
        driven.step(f'goto("{page}")')
    counters = driven.run(inspector.session.send("Memory.getDOMCounters"))
    # Without collecting they are nearly 80: as many as were shown.
    assert counters["documents"] <= DOCUMENTS_PER_COLLECTION + 10
    assert inspector.documents_shown < DOCUMENTS_PER_COLLECTION


@pytest.mark.thorough
def test_sessions_of_frames_end_with_them(driven: Driven, site):
    other = site.url("/there", host="localhost")
    site.put("/there", "<p>there")
    page = site.put("/cross", f"<iframe src={other}></iframe>")
    inspector = driven.run(driven.session.inspector())
    load = f"document.querySelector('iframe').src = '{other}'"

    def sessions() -> int:
        seen = driven.step("noop(0)")
        assert "there" in seen["text_content"]
        assert len(inspector.sessions) == 2
        return driven.kept()["CDPSession"]

    driven.step(f'goto("{page}")')
    before = sessions()
    for _ in range(3):
        navigated = driven.session.page.wait_for_event("framenavigated")
        driven.run(_together(navigated, driven.session.page.evaluate(load)))
        driven.run(_together(*inspector._detaching))
    assert sessions() == before


async def _together(*work: Any) -> None:
    await asyncio.gather(*work)


@pytest.mark.thorough
def test_bounded_records_of_the_inspector(driven: Driven, site):
    site.put("/tiny", "<p>tiny")
    page = site.put("/two", "<iframe src=/tiny></iframe>" * 2)
    inspector = driven.run(driven.session.inspector())

    def kept() -> tuple[int, ...]:
        tracker = driven.session.tracker
        return (
            len(inspector.bids._elements), len(inspector.bids._frames),
            len(inspector._frame_sessions), len(inspector._detaching), len(driven.session.handles),
            len(driven.session.inspectors), len(tracker._pending), len(tracker._navigations),
            len(driven.session._running),
        )  # fmt: skip

    driven.step(f'goto("{page}")')
    before = kept()
    for _ in range(5):
        driven.step(f'goto("{page}")')
    assert kept() == before
    driven.step(f'new_tab() goto("{page}") tab_close()')
    assert len(driven.session.inspectors) == 1


@pytest.mark.thorough
def test_the_driver_remembers_less(driven: Driven, site):
    page = site.put("/requests", "<p id=p>before")
    driven.step(f'goto("{page}")')
    script = """async count => {
      for (let done = 0; done < count; done += 20)
        await Promise.all(Array.from({length: 20}, (_, i) => fetch("/requests?" + (done + i))));
    }"""
    driven.run(driven.session.page.evaluate(script, LIMIT + 200))
    counts = driven.kept()
    assert LIMIT // 2 < counts["Request"] <= LIMIT
    assert counts["Response"] <= LIMIT
    seen = driven.step("noop(0)")
    assert "before" in seen["text_content"]
    driven.step(f'goto("{page}")')
    # Addresses that are all different are no polling loops, and are not remembered as such.
    assert len(driven.session.tracker._rounds) <= MAX_ADDRESSES


def test_elements_long_gone_are_forgotten():
    frame = FrameBids("", None, None, None, "F")
    frame.renew(("F", 1))
    first = frame.assign(1, False)
    for number in range(2, 40):
        frame.assign(number, False)
    frame.forget_all_but([1, 39], limit=50)
    assert len(frame.by_backend_id) == 39
    frame.forget_all_but([1, 39], limit=20)
    assert len(frame.by_backend_id) == 2
    # Those that are left keep their bids, and no bid is given twice.
    assert frame.assign(1, False) == first
    assert frame.assign(50, False) == "39"


def test_the_switch_is_added_to_the_users_options(monkeypatch):
    monkeypatch.setenv("NODE_OPTIONS", "--no-warnings")
    limit_driver_memory()
    assert os.environ["NODE_OPTIONS"].startswith('--no-warnings --require "')
    monkeypatch.delenv("NODE_OPTIONS")
    limit_driver_memory()
    assert os.environ["NODE_OPTIONS"].startswith('--require "')


@pytest.mark.thorough
def test_a_stalled_download_is_waited_for_by_its_own_step(driven: Driven, site, monkeypatch):
    monkeypatch.setattr(operations, "DOWNLOAD_TIMEOUT_SECONDS", 0.5)
    page = site.put("/page", "<a href=/stalled style='font-size:99px'>get</a>")
    driven.step(f'goto("{page}")')
    seen = driven.step("mouse_click(50, 50)")
    notice = "/stalled is still running; a later step will report it when it finishes"
    assert notice in seen["notices"][0]
    # Later steps must not wait for it at all.
    monkeypatch.setattr(operations, "DOWNLOAD_TIMEOUT_SECONDS", 600)
    assert driven.step("noop(0)")["notices"] == []


@pytest.mark.thorough
def test_a_page_for_errors_is_let_finish(driven: Driven, monkeypatch):
    """Stopped while it begins, it is never drawn, and its picture never comes."""
    stopped: list[BrowserSession] = []

    async def stop_loading(session: BrowserSession) -> None:
        stopped.append(session)

    monkeypatch.setattr(BrowserSession, "stop_loading", stop_loading)
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        seen = driven.step(f'goto("http://127.0.0.1:{unheard.getsockname()[1]}")', fails=True)
    assert "ERR_CONNECTION_REFUSED" in seen["last_action_error"]
    assert stopped == []
    assert "127.0.0.1" in seen["text_content"]
    assert seen["screenshot"]


@pytest.mark.thorough
def test_a_crashed_tab_that_does_not_close_is_not_listed(driven, site, monkeypatch):
    monkeypatch.setattr("oh_jupyter.browser.worker.session.CLOSE_TIMEOUT_SECONDS", 0.05)
    driven.step(f'goto("{site.put("/fine", "<p>fine")}")')
    page = driven.session.page
    # A stand-in for a machine that is too busy to close the tab in time.
    monkeypatch.setattr(page, "close", asyncio.Event().wait)
    seen = driven.step('goto("chrome://crash")', fails=True)
    assert seen["open_pages_urls"] == ["about:blank"]
    monkeypatch.undo()
    driven.run(page.close())
    assert driven.step("noop(0)")["open_pages_urls"] == ["about:blank"]
