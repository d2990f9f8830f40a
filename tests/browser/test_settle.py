"""What an action sets off is in its observation; what goes on for ever does not hold it up."""

from __future__ import annotations

import time

import pytest

from oh_jupyter.browser import BrowserEnv


def button(script: str) -> str:
    return f"""<button onclick="{script}">go</button><p id=p>waiting</p><script>
      const done = () => document.getElementById('p').textContent = 'effect';
    </script>"""


@pytest.mark.parametrize(
    ("script", "longest"),
    [
        ("done()", 1),
        ("Promise.resolve().then(done)", 1),
        ("requestAnimationFrame(done)", 1),
        ("setTimeout(done, 50)", 1),
        ("setTimeout(done, 380)", 1.5),
        ("setTimeout(() => setTimeout(done, 200), 200)", 1.5),
        ("fetch('/late?ms=100').then(done)", 1.5),
        ("fetch('/late?ms=1000').then(r => r.text()).then(done)", 3),
        ("fetch('/late?ms=2000').then(done)", 4),
        ("setTimeout(() => fetch('/late?ms=700').then(() => setTimeout(done, 100)), 300)", 3),
        ("location = '/effect'", 2),
        ("setTimeout(() => location = '/slow-effect', 100)", 4),
        ("history.pushState(0, '', '/pushed'); done()", 1),
    ],
)
def test_effects_are_observed(env: BrowserEnv, site, show, bid, script, longest):
    site.put("/effect", "<p>effect")
    site.put("/slow-effect", "<script src='/late?ms=1000'></script><p>effect")
    seen = show(button(script))
    start = time.monotonic()
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert "effect" in seen["text_content"]
    assert time.monotonic() - start < longest


@pytest.mark.parametrize(
    "script",
    [
        "setInterval(done, 20)",
        "(function again() { done(); setTimeout(again, 30) })()",
        "(async () => { for (;;) { await new Promise(r => setTimeout(r, 100)); done() } })()",
        "setInterval(() => fetch('/poll?ms=20').then(done), 40)",
        "(async function poll() { for (;;) { await fetch('/poll?ms=80'); done() } })()",
        "requestAnimationFrame(function again() { done(); requestAnimationFrame(again) })",
    ],
)
def test_endless_activity_does_not_hold_it_up(env: BrowserEnv, show, bid, script):
    seen = show(button(script))
    env.step(f'click("{bid(seen, "button")}")')
    # The first look may wait within its bounds; after that the loop is known.
    env.step("noop(1500)")
    start = time.monotonic()
    seen = env.step("noop(0)")
    assert time.monotonic() - start < 0.8
    assert "effect" in seen["text_content"]


def test_a_request_that_is_never_answered_is_waited_for_once(env: BrowserEnv, show, bid):
    seen = show(button("fetch('/never'); done()"))
    start = time.monotonic()
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert time.monotonic() - start < 4
    start = time.monotonic()
    env.step("noop(0)")
    assert time.monotonic() - start < 1


def test_a_page_with_a_part_that_never_comes_is_observed(env: BrowserEnv, show):
    start = time.monotonic()
    seen = show("<p>early</p><img src=/never><script async src=/never?2></script>")
    assert "early" in seen["text_content"]
    assert time.monotonic() - start < 6


def test_the_clock_functions_look_native_and_work(env: BrowserEnv, show):
    seen = show("""<p id=p></p><script>
      const out = [];
      const id = setTimeout(() => out.push('never'), 50);
      clearTimeout(id);
      setTimeout((a, b) => out.push(a + b), 10, 'ar', 'gs');
      setTimeout("out.push('text')", 20);
      setTimeout(function () { out.push(this === window) }, 30);
      setTimeout(() => document.getElementById('p').textContent =
        out.join() + typeof id + /native code/.test(setTimeout) +
        Object.keys(window).some(key => key.includes('oh_')), 100);
    </script>""")
    assert "args,text,truenumbertruefalse" in seen["text_content"]
