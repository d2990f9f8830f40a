"""An idle browser closes, and continues where it was."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.errors import BrowserError
from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.browser


@pytest.mark.thorough
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


@pytest.mark.parametrize("seconds", ["x", -1, math.nan, math.inf])
def test_an_invalid_number_of_seconds_is_refused(seconds: Any) -> None:
    with pytest.raises(BrowserError, match=f"must be .* of seconds, .* not {seconds!r}"):
        BrowserEnv(idle_seconds=seconds)
