"""A browser that nobody uses stands still or is closed, and goes on where it was."""

from __future__ import annotations

import math
from typing import Any

import psutil
import pytest

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.errors import BrowserError
from oh_jupyter.testing import descendants, wait_until

pytestmark = pytest.mark.browser


def workers() -> set[psutil.Process]:
    """The workers of all browsers that run."""
    ends = ["oh_jupyter.browser.worker.main"]
    return set(descendants(lambda process: process.cmdline()[-1:] == ends))


def test_an_idle_browser_is_closed_and_opens_its_tabs_again(site) -> None:
    first = site.put("/idle", "<!doctype html><title>first</title>")
    with BrowserEnv(idle_seconds=0.5) as env:
        env.step(f'goto("{first}")\nnew_tab()', include=())
        env.evaluate("1")
        env.step(f'goto("{first}?second")\ntab_focus(0)', include=())
        env.evaluate("document.cookie = 'who=ada', localStorage.x = 'y'")
        wait_until(lambda: not env.check_alive(), what="the idle browser's end")
        seen = env.step("noop(0)", include=())
        assert any(each.startswith("The browser was closed while") for each in seen["notices"])
        assert seen["last_action_error"] == ""
        assert seen["open_pages_urls"] == [first, f"{first}?second"]
        assert seen["active_page_index"] == 0
        assert env.evaluate("document.cookie + localStorage.x") == "who=aday"


def test_idle_pages_are_frozen_until_somebody_acts_or_looks(site) -> None:
    page = site.put("/busy", "<!doctype html><title>busy</title><input value=typed>")
    others = workers()
    with BrowserEnv(freeze_seconds=0.1) as env:
        env.step(f'goto("{page}")', include=())
        (worker,) = workers() - others

        def frozen() -> list[psutil.Process]:
            return descendants(lambda p: p.status() == psutil.STATUS_STOPPED, of=worker.pid)

        for use in (lambda: env.step("noop(0)")["screenshot"], lambda: env.watch(seconds=60)):
            wait_until(frozen, what="the idle pages' rest")
            assert env.check_alive()
            assert use()
            assert env.evaluate("document.querySelector('input').value") == "typed"
        wait_until(frozen, what="the idle pages' rest")
        left = frozen()
    assert not psutil.wait_procs(left, timeout=60)[1]


@pytest.mark.parametrize("name", ["idle_seconds", "freeze_seconds"])
@pytest.mark.parametrize("seconds", ["x", -1, math.nan, math.inf])
def test_what_is_no_number_of_seconds_is_refused(name: str, seconds: Any) -> None:
    with pytest.raises(BrowserError, match=f"{name} must be .* of seconds, .* not {seconds!r}"):
        BrowserEnv(**{name: seconds})
