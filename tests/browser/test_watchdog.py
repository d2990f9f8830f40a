"""A page that computes on a busy machine does not hang; one that never ends does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psutil
import pytest
from playwright.async_api import Page, async_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker import watchdog
from oh_jupyter.browser.worker.watchdog import Watchdog
from oh_jupyter.testing import descendants, suspended

pytestmark = [pytest.mark.thorough, pytest.mark.browser]

COMPUTE = """() => {
  console.log("computing");
  let sum = 0;
  for (let i = 0; i < 6e8; i++) sum += i % 7;
  return sum;
}"""


def renderers() -> list[Any]:
    return descendants(lambda process: "--type=renderer" in process.cmdline())


@contextlib.contextmanager
def busy_processors() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run two processes that compute all the time."""
    busy = [
        subprocess.Popen(["nice", "-n", "1", sys.executable, "-c", "while True: pass"])
        for _ in range(2)
    ]
    try:
        yield busy
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextlib.contextmanager
def little_processor_time() -> Iterator[None]:
    """Have renderers share one processor with two processes that compute all the time."""
    processes = renderers()
    assert processes
    with busy_processors() as busy:
        for process in (*processes, *(psutil.Process(each.pid) for each in busy)):
            process.cpu_affinity([min(os.sched_getaffinity(0))])
        yield


def ask(question: Callable[[Page, Watchdog], Awaitable[bool]]) -> bool:
    async def run() -> bool:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_executable())
            page = await browser.new_page()
            await page.evaluate("1")
            try:
                return await question(page, Watchdog(browser))
            finally:
                await browser.close()

    return asyncio.run(run())


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processor affinity")
def test_a_page_that_computes_with_little_processor_time_does_not_hang(monkeypatch):
    monkeypatch.setattr(watchdog, "HUNG_IDLE_SECONDS", 1.0)

    async def question(page: Page, dog: Watchdog) -> bool:
        started = asyncio.Event()
        page.on("console", lambda message: started.set())
        with little_processor_time():
            computing = asyncio.ensure_future(page.evaluate(COMPUTE))
            await started.wait()  # the request itself may wait for a processor for a second
            return await dog.responds(computing)

    assert ask(question)


@pytest.mark.thorough
def test_a_page_that_never_ends_hangs(monkeypatch):
    monkeypatch.setattr(watchdog, "HUNG_CPU_SECONDS", 0.5)

    async def question(page: Page, dog: Watchdog) -> bool:
        return await dog.responds(page.evaluate("() => { for (;;); }"))

    assert not ask(question)


def test_a_page_that_uses_no_processor_time_hangs(monkeypatch):
    monkeypatch.setattr(watchdog, "HUNG_IDLE_SECONDS", 1.0)

    async def question(page: Page, dog: Watchdog) -> bool:
        with suspended(*renderers()):
            return await dog.responds(page.evaluate("1"))

    assert not ask(question)


@pytest.mark.thorough
def test_honest_work_on_a_busy_machine(env: BrowserEnv, site):
    rows = "".join(f"<tr><td>{i}<td><a href=#>x</a>" for i in range(5000))
    table = site.put("/rows", f"<table>{rows}</table>")
    script = f"<p id=p>-</p><script>setTimeout(() => p.textContent = ({COMPUTE})())</script>"
    computing = site.put("/computing", script)
    with busy_processors():
        for page, text in ((computing, "1799999"), (table, "4999")):
            seen = env.step(f'goto("{page}")')
            assert seen["last_action_error"] == ""
            assert seen["notices"] == []
            assert text in seen["text_content"]
