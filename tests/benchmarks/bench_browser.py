"""What a browser step costs, as ratios to raw Playwright in the same run.

Run it with ``python tests/benchmarks/bench_browser.py``. The baseline does the action, then
fetches screenshot, DOM snapshot, accessibility tree and text at the same time, and waits for
nothing; BrowserEnv also waits for effects, gives bids, measures every element, draws the
marks, converts the text and brings it all through a pipe.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.async_api import Page, async_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.browse import TREE_PARTS
from oh_jupyter.browser.executable import find_executable

ROUNDS = 9
SMALL = "<!doctype html><title>s</title><h1>Small</h1><input><button>b</button>" + "<p>line" * 20
LARGE = "<!doctype html>" + "".join(
    f"<div><a href=#{i}>link {i}</a><span>text {i}</span></div>" for i in range(1667)
)
FRAMES = "<!doctype html>" + "<iframe src=/small></iframe>" * 4
PAGES = {"/small": SMALL, "/large": LARGE, "/frames": FRAMES}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def steps(site: str) -> list[tuple[str, str, Callable[[Page], Awaitable[Any]], str]]:
    """Name, page to start from, the raw action, and the same in the action language."""
    return [
        ("noop(0), small", "/small", lambda page: asyncio.sleep(0), "noop(0)"),
        ("goto small", "/small", lambda page: page.goto(f"{site}/small"), f'goto("{site}/small")'),
        ("click, small", "/small", lambda page: page.click("button"), 'click("{button}")'),
        ("fill, small", "/small", lambda page: page.fill("input", "x"), 'fill("{input}", "x")'),
        (
            "goto with frames",
            "/frames",
            lambda page: page.goto(f"{site}/frames"),
            f'goto("{site}/frames")',
        ),
        ("noop(0), 5,000 elements", "/large", lambda page: asyncio.sleep(0), "noop(0)"),
        (
            "goto 5,000 elements",
            "/large",
            lambda page: page.goto(f"{site}/large"),
            f'goto("{site}/large")',
        ),
    ]


async def raw(site: str) -> tuple[dict[str, float], float]:
    times: dict[str, float] = {}
    start = time.perf_counter()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_executable(), chromium_sandbox=os.geteuid() != 0
        )
        context = await browser.new_context(viewport={"width": 1280, "height": 720})
        page = await context.new_page()
        session = await context.new_cdp_session(page)

        async def look() -> None:
            await asyncio.gather(
                page.screenshot(),
                session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []}),
                session.send("Accessibility.getFullAXTree"),
                page.inner_text("body"),
            )

        await page.goto(f"{site}/small")
        await look()
        started = time.perf_counter() - start
        for name, path, action, _ in steps(site):
            await page.goto(site + path)
            await look()
            measured = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                await action(page)
                await look()
                measured.append(time.perf_counter() - begin)
            times[name] = statistics.median(measured)
        await browser.close()
    return times, started


def stepped(site: str, include: tuple[str, ...] | None) -> tuple[dict[str, float], float]:
    times: dict[str, float] = {}
    start = time.perf_counter()
    with BrowserEnv() as env:
        env.step(f'goto("{site}/small")', include=include)
        started = time.perf_counter() - start
        for name, path, _, calls in steps(site):
            seen = env.step(f'goto("{site}{path}")')
            bids = {
                node["role"]["value"]: node["browsergym_id"]
                for node in seen["axtree_object"]["nodes"]
                if "browsergym_id" in node
            }
            calls = calls.replace("{button}", bids.get("button", ""))
            calls = calls.replace("{input}", bids.get("textbox", ""))
            measured = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                seen = env.step(calls, include=include)
                measured.append(time.perf_counter() - begin)
                assert seen["last_action_error"] == "", seen["last_action_error"]
            times[name] = statistics.median(measured)
    return times, started


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}"
    base, base_start = asyncio.run(raw(site))
    whole, whole_start = stepped(site, None)
    wire, _ = stepped(site, TREE_PARTS)
    server.shutdown()
    print(f"{'step':26}{'raw Playwright':>16}{'all parts':>22}{'parts of the wire':>22}")
    rows = [("start and first page", base_start, whole_start, None)]
    rows += [(name, base[name], whole[name], wire[name]) for name in base]
    for name, baseline, *others in rows:
        cells = "".join(
            f"{value * 1000:9.0f} ms {value / baseline:6.2f} x " if value else " " * 22
            for value in others
        )
        print(f"{name:26}{baseline * 1000:13.0f} ms{cells}")


if __name__ == "__main__":
    main()
