"""A person watches the page and uses it, beside the steps of a program."""

from __future__ import annotations

import base64

from oh_jupyter.browser import BrowserEnv

JPEG = b"\xff\xd8\xff"


def test_without_a_browser_there_is_nothing_to_watch() -> None:
    with BrowserEnv() as env:
        assert env.watch(seconds=0) is None


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
