"""What goes wrong in a step is an observation, and the browser goes on."""

from __future__ import annotations

import threading

import pytest

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.errors import BrowserTimeoutError


def test_endless_script_is_stopped(env: BrowserEnv, site):
    page = site.put("/loop", "<title>ok</title><button onclick='for (;;) {}'>b</button>")
    env.step(f'goto("{page}")')
    seen = env.step("mouse_click(20, 15)")
    assert "did not end and was stopped" in seen["last_action_error"]
    seen = env.step("noop(0)")
    assert seen["last_action_error"] == ""
    assert seen["open_pages_titles"] == ["ok"]


@pytest.mark.slow
def test_pages_that_never_answer(env: BrowserEnv, site):
    page = site.put("/link", "<p>here</p><a href=/never?x style='font-size:99px'>never</a>")
    env.step(f'goto("{page}")')
    seen = env.step("mouse_click(50, 90)")
    assert "not answered within 10 s and was stopped" in seen["last_action_error"]
    assert "here" in seen["text_content"]
    other = site.url("/never", "localhost")
    for _ in range(2):
        seen = env.step(f'goto("{other}")', timeout=5, include=[])
        assert seen["last_action_error"].startswith("TimeoutError: The action took longer than 5 s")
    seen = env.step("noop(0)")
    assert seen["url"] == page
    assert "here" in seen["text_content"]


@pytest.mark.parametrize(
    "script",
    [
        "<meta http-equiv=refresh content=0>",
        pytest.param("<script>location.reload()</script>", marks=pytest.mark.slow),
    ],
)
def test_a_page_that_goes_on_for_ever(env: BrowserEnv, site, script: str):
    fine = site.put("/fine", "<p>fine")
    page = site.put("/again", f"<p>again{script}")
    seen = env.step(f'goto("{page}")')
    assert "went on to another page again and again" in seen["last_action_error"]
    assert seen["last_action_error"].count("again and again") == 1
    seen = env.step(f'goto("{fine}")')
    assert seen["last_action_error"] == ""
    assert "fine" in seen["text_content"]


def test_renderer_crash(env: BrowserEnv, site):
    page = site.put("/fine", "<p>fine")
    env.step(f'goto("{page}")')
    seen = env.step('goto("chrome://crash")')
    assert "crashed" in seen["last_action_error"]
    assert "lost" in seen["last_action_error"]
    assert seen["open_pages_urls"] == ["about:blank"]
    seen = env.step(f'goto("{page}")')
    assert seen["last_action_error"] == ""
    assert "fine" in seen["text_content"]


def test_timeout_leaves_nothing_for_the_next_step(env: BrowserEnv, site, stalled_worker):
    page = site.put("/fine", "<p>fine")
    large = site.put("/large", "<div><b>x</b></div>" * 10_000)
    env.step(f'goto("{large}")', include=[])
    with stalled_worker(), pytest.raises(BrowserTimeoutError, match=r"within 0\.2 s"):
        env.step("noop(0)", timeout=0.2)
    assert env.check_alive()
    seen = env.step(f'goto("{page}")')
    assert seen["last_action"] == f'goto("{page}")'
    assert "fine" in seen["text_content"]


def test_an_action_that_takes_too_long_is_given_up(env: BrowserEnv):
    env.start()
    # The observation may take as long again.
    seen = env.step("noop(600000)", timeout=5, include=[])
    assert seen["last_action_error"].startswith("TimeoutError: The action took longer than 5 s")


def test_steps_from_many_threads(env: BrowserEnv, site):
    pages = [site.put(f"/t{i}", f"<p>page {i}") for i in range(6)]
    wrong: list[str] = []

    def visit(index: int) -> None:
        seen = env.step(f'goto("{pages[index]}")', include=["text_content"])
        if f"page {index}" not in seen["text_content"]:
            wrong.append(seen["text_content"])

    threads = [threading.Thread(target=visit, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
