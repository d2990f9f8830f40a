"""Effects of an action are in its observation; endless activity does not delay it."""

from __future__ import annotations

import asyncio
import time
from unittest.mock import Mock

import pytest
from playwright.sync_api import sync_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker.settle import ActivityTracker
from oh_jupyter.browser.worker.watchdog import Patience

pytestmark = pytest.mark.browser


def button(script: str) -> str:
    return f"""<button onclick="{script}">go</button><p id=p>waiting</p><script>
      const done = () => document.getElementById('p').textContent = 'effect';
    </script>"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [
        "done()",
        "Promise.resolve().then(done)",
        "requestAnimationFrame(done)",
        "requestAnimationFrame(() => requestAnimationFrame(done))",
        "setTimeout(done)",
        "setTimeout(done, 50)",
        "setTimeout(done, 380)",
        "setTimeout(() => setTimeout(done, 200), 200)",
        "const id = setInterval(() => { clearInterval(id); done() }, 350)",
        "let n = 0, t = setInterval(() => { if (++n == 4) { clearInterval(t); done() } }, 90)",
        "for (let i = 0; i < 9; i++) setTimeout(() => { if (i === 8) done() }, 300)",
        "const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0)",
        "fetch('/late?ms=100').then(done)",
        "fetch('/late?ms=1000').then(r => r.text()).then(done)",
        # As late as leaves a busy machine a second of those in which requests are waited for.
        "fetch('/late?ms=1500').then(done)",
        "setTimeout(() => fetch('/late?ms=700').then(() => setTimeout(done, 100)), 300)",
        "setTimeout(() => fetch('/late?ms=100').then(done), 50)",
        "requestAnimationFrame(() => fetch('/late?ms=100').then(done))",
        "location = '/effect'",
        "setTimeout(() => location = '/slow-effect', 100)",
        "history.pushState(0, '', '/pushed'); done()",
    ],
)
def test_effects_are_observed(env: BrowserEnv, site, show, bid, script):
    site.put("/effect", "<p>effect")
    site.put("/slow-effect", "<script src='/late?ms=1000'></script><p>effect")
    seen = show(button(script))
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert "effect" in seen["text_content"]


@pytest.mark.parametrize(
    "script",
    [
        "done()",
        "Promise.resolve().then(done)",
        "requestAnimationFrame(() => requestAnimationFrame(done))",
        "setTimeout(done, 300)",
        "const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0)",
        "fetch('/late?ms=300').then(done)",
    ],
)
def test_effects_of_typing_are_observed(env: BrowserEnv, show, bid, script):
    seen = show(f"""<input aria-label=field oninput="{script}"><p id=p>waiting</p><script>
      const done = () => document.getElementById('p').textContent = 'effect';
    </script>""")
    seen = env.step(f'fill("{bid(seen, "field")}", "x")')
    assert "effect" in seen["text_content"]


def has_a_step_within(env: BrowserEnv, seconds: float) -> bool:
    """Whether a step that does nothing gets by with that: one that waits in vain never does.

    The machine may be busy, so that it may take some steps until one shows it.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        start = time.monotonic()
        env.step("noop(0)", include=())
        if time.monotonic() - start < seconds:
            return True
    return False


@pytest.mark.thorough
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
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert seen["last_action_error"] == ""
    # The first look may wait within its bounds; after that the loop is known.
    env.step("noop(1500)")
    assert "effect" in env.step("noop(0)")["text_content"]
    # A step that waits in vain takes more than 0.6 s, however fast the machine.
    assert has_a_step_within(env, 0.5)


@pytest.mark.thorough
def test_a_request_that_is_never_answered_is_waited_for_once(env: BrowserEnv, show, bid):
    seen = show(button("fetch('/never'); done()"))
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert "effect" in seen["text_content"]
    # Waiting for it again would take 2.5 s.
    assert has_a_step_within(env, 2)


@pytest.mark.thorough
def test_a_page_with_a_part_that_never_comes_is_observed(env: BrowserEnv, show):
    seen = show("<p>early</p><img src=/never><script async src=/never?2></script>")
    assert "early" in seen["text_content"]


COMPUTE = "for (const t = performance.now(); performance.now() - t < 1200;);"


@pytest.mark.thorough
def test_a_page_that_computes_while_it_loads_is_waited_for(env: BrowserEnv, site):
    """Seven seconds of computing use none of those in which requests are waited for."""
    for number in range(6):
        site.put(f"/part{number}", COMPUTE + (f"load({number + 1})" if number < 5 else "done()"))
    page = site.put(
        "/parts",
        """<p id=p>waiting</p><script>
          const done = () => p.textContent = 'effect';
          const load = (number) =>
            document.head.append(Object.assign(document.createElement('script'), {
              src: '/part' + number }));
          load(0);
        </script>""",
    )
    assert "effect" in env.step(f'goto("{page}")')["text_content"]


def test_the_clock_functions_work(env: BrowserEnv, show):
    show("""<script>
      const out = [];
      const id = setTimeout(() => out.push('never'), 50);
      clearTimeout(id);
      setTimeout((a, b) => out.push(a + b), 10, 'ar', 'gs');
      const interval = setInterval(() => { out.push('round'); clearTimeout(interval) }, 15);
      clearInterval(setInterval(() => out.push('never'), 15));
      setTimeout("out.push('text')", 20);
      setTimeout(function () { out.push(this === window) }, 30);
      const drawn = new Promise((done) => requestAnimationFrame(
        (time) => done(out.push(typeof time))));
      const late = new Promise((done) => setTimeout(done, 100));
      const all = Promise.all([drawn, late]).then(() => out.sort().join() + typeof id);
    </script>""")
    assert env.evaluate("all") == "args,number,round,text,truenumber"


LOOK = """() => {
  const frame = document.body.appendChild(document.createElement('iframe')).contentWindow;
  const stack = (call) => { try { call() } catch (error) { return error.stack } };
  const about = (holder, name) => {
    const value = holder[name];
    const { writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(holder, name);
    return [String(value), value.name, value.length, Object.getOwnPropertyNames(value),
      'prototype' in value, writable, enumerable, configurable,
      frame.Function.prototype.toString.call(value), stack(() => value.call({})),
      stack(() => new value())];
  };
  return {
    functions: [about(window, 'setTimeout'), about(window, 'clearTimeout'),
      about(window, 'setInterval'), about(window, 'clearInterval'),
      about(window, 'requestAnimationFrame'), about(Function.prototype, 'toString')],
    names: Object.getOwnPropertyNames(window).filter((name) => name !== 'LOOK').sort(),
    symbols: Object.getOwnPropertySymbols(window).length,
  };
}"""


@pytest.mark.thorough
def test_a_page_cannot_tell(env: BrowserEnv, site):
    page = site.put("/plain", "<p>plain")
    env.step(f'goto("{page}")')
    ours = env.evaluate(LOOK)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_executable())
        plain = browser.new_page()
        plain.goto(page)
        theirs = plain.evaluate(LOOK)
        browser.close()
    for our, their in zip(ours["functions"], theirs["functions"], strict=True):
        assert our[:9] == their[:9]
        assert [text.count("\n") for text in our[9:]] == [text.count("\n") for text in their[9:]]
    assert ours["names"] == theirs["names"]
    assert ours["symbols"] == theirs["symbols"]


def test_callbacks_have_their_own_stack(env: BrowserEnv, show):
    seen = show("""<p id=p></p><script>
      setTimeout(() => { p.textContent = new Error().stack.split('\\n').length + ' lines' }, 10)
    </script>""")
    assert "2 lines" in seen["text_content"]


def test_effects_are_observed_in_a_reopened_document(env: BrowserEnv, show, bid):
    seen = show(
        "<script>document.open(); document.write(`"
        + button("setTimeout(done, 300)").replace("</script>", "<\\/script>")
        + "`); document.close()</script>"
    )
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert "effect" in seen["text_content"]


def test_the_browsers_own_page_for_errors_is_not_waited_for():
    """Playwright loses now and then that it is parsed, so it stands for one that never is."""
    never = Mock(side_effect=asyncio.Future)
    page = Mock(url="chrome-error://chromewebdata/", wait_for_load_state=never)

    async def loaded() -> None:
        await ActivityTracker(Mock(), Mock())._loaded(page, Patience(0))

    asyncio.run(loaded())
    never.assert_not_called()
