"""A person watches the page and uses it, beside the steps of a program."""

from __future__ import annotations

import asyncio
import base64
import io
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.worker.screencast import Screencast

pytestmark = pytest.mark.browser

JPEG = b"\xff\xd8\xff"
QUICK_CHANGES_SCRIPT = """async (last) => {
  for (let degrees = 15; degrees < 360; degrees += 30) {
    document.body.style.background = `hsl(${degrees} 50% 50%)`;
    await new Promise(requestAnimationFrame);
  }
  document.body.style.background = last;
}"""


def colour_of(frame: str) -> tuple[int, ...]:
    """Red, green and blue in the lower right of a picture."""
    with Image.open(io.BytesIO(base64.b64decode(frame))) as picture:
        colour = picture.convert("RGB").getpixel((picture.width - 9, picture.height - 9))
    assert isinstance(colour, tuple)
    return colour


def test_without_a_browser_there_is_nothing_to_watch() -> None:
    with BrowserEnv() as env:
        assert env.watch(seconds=0) is None


@pytest.mark.thorough
def test_pictures_come_when_the_page_changes(env, show) -> None:
    show("<button onclick=\"document.body.style.background='red'\">press</button>")
    seen = env.watch(seconds=60)
    assert base64.b64decode(seen["frame"]).startswith(JPEG)
    assert (seen["width"], seen["height"]) == (1280, 720)
    assert seen["tabs"] == [{"title": "t", "active": True}]
    (mark,) = env.marks()
    x, y, width, height = mark["bbox"]
    assert env.act(f"mouse_click({x + width / 2}, {y + height / 2})") == ""
    later = env.watch(seen["number"], seconds=60)
    assert later["number"] > seen["number"]
    assert env.evaluate("document.body.style.background") == "red"
    (notice,) = env.step("noop(0)", include=())["notices"]
    assert notice.startswith("A person has used the browser")
    assert env.step("noop(0)", include=())["notices"] == []


@pytest.mark.thorough
def test_the_last_of_quick_changes_is_seen(env, show) -> None:
    """The browser drops pictures while some wait to be acknowledged."""
    show("here")
    seen = env.watch(seconds=60)
    for colour, rgb in {"#f00": (255, 0, 0), "#0f0": (0, 255, 0), "#00f": (0, 0, 255)}.items():
        env.evaluate(QUICK_CHANGES_SCRIPT, colour)
        while colour_of(seen["frame"]) != pytest.approx(rgb, abs=40):
            later = env.watch(seen["number"], seconds=60)
            assert later["number"] > seen["number"], "nothing new was seen within 60 s"
            seen = later


class RefusingCDP:
    """Stands for a page that is replaced just then: when Chromium does that cannot be arranged."""

    def __init__(self) -> None:
        self.frame_taken: Any = None
        self.sent: list[str] = []
        self.refusals = 0

    def on(self, _event: str, listener: Any) -> None:
        self.frame_taken = listener

    async def send(self, method: str, _params: Any = None) -> None:
        self.sent.append(method)
        if method == "Page.startScreencast":
            if self.refusals:
                self.refusals -= 1
                raise RuntimeError("Not attached to an active page")
            data = f"frame {len(self.sent)}"
            self.frame_taken({"data": data, "sessionId": 1, "metadata": {}})

    async def detach(self) -> None:
        pass


def test_pictures_continue_when_a_new_page_appears_during_their_restart() -> None:
    cdp = RefusingCDP()

    async def attach(_page: object) -> RefusingCDP:
        return cdp

    tab = SimpleNamespace(context=SimpleNamespace(new_cdp_session=attach), url="about:blank")
    session: Any = SimpleNamespace(active_page=tab, tabs=[], run_aside=asyncio.ensure_future)

    async def watch() -> dict[str, Any]:
        cast = Screencast(session)
        known = (await cast.watch(-1, 60))["number"]
        cdp.refusals = 2
        for data in ("a", "b"):  # the browser drops what comes after
            cdp.frame_taken({"data": data, "sessionId": 1, "metadata": {}})
        return await cast.watch(known + 2, 60)

    seen = asyncio.run(watch())
    assert (seen["number"], seen["frame"]) == (4, f"frame {len(cdp.sent)}")
    assert cdp.sent.count("Page.startScreencast") == 4


def test_the_watcher_follows_the_active_tab(env, show) -> None:
    show("here")
    seen = env.watch(seconds=60)
    assert env.act("new_tab()") == ""
    seen = env.watch(seen["number"], seconds=60)
    assert [tab["active"] for tab in seen["tabs"]] == [False, True]
    assert seen["url"] == "about:blank"
    assert "IndexError" in env.act("tab_focus(7)")
    assert env.act("tab_close()") == ""
    seen = env.watch(seen["number"], seconds=60)
    assert [tab["title"] for tab in seen["tabs"]] == ["t"]


def test_a_person_points_at_an_element(env, show, bid) -> None:
    seen = show("<button style='width:200px;height:80px' onclick='document.title=1'>here</button>")
    with ThreadPoolExecutor(1) as waiting:
        picked = waiting.submit(env.pick)
        while not picked.done():  # the clicks before it waits reach the page
            env.act("mouse_move(50, 50)\nmouse_click(52, 52)")
    assert picked.result() == bid(seen, "button 'here'")
