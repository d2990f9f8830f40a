"""Clients, elements of a page and lines of a file: how figures grow with them, beside their limits.

``python tests/benchmarks/bench_curves.py`` prints the figures and writes their plots.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import ssl
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from bench_all import TARGET, machine
from bench_browser import launched
from curve import Curve, plot_of, table_of
from figure import cost
from playwright.async_api import async_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.testing import LiveServer, run_server

CLIENTS = (1, 4, 16, 64, 200)
SECONDS = 5.0
ELEMENTS = (500, 2_000, 5_000, 10_000, 20_000)
LINES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 3
ACTION = json.dumps({"action": {"action": "read", "args": {"path": "/etc/hostname"}}}).encode()


def clients() -> Curve:
    """Return the Actions a second of a server and one kernel, by clients."""
    options = ("--OhJupyter.enable_browser=False", "--OhJupyter.max_queued_actions=1000")
    with tempfile.TemporaryDirectory() as directory, run_server(Path(directory), *options) as live:
        points = [(number, *asyncio.run(rates(live, number))) for number in CLIENTS]
    return Curve("Actions by clients", "clients", "actions a second", "GET alive", points)


async def rates(live: LiveServer, number: int) -> tuple[float, float]:
    """Return the Actions and the bare requests a second of so many clients."""
    # One connection each: a pool of many connections would be slower than the server.
    context = ssl.create_default_context()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=f"{live.url}/oh_jupyter/",
                    headers=live.headers,
                    timeout=300,
                    verify=context,
                )
            )
            for _ in range(number)
        ]
        (await act(clients[0])).raise_for_status()
        return await rate(act, clients), await rate(alive, clients)


async def act(client: httpx.AsyncClient) -> httpx.Response:
    """Read a small file."""
    return await client.post("execute_action", content=ACTION)


async def alive(client: httpx.AsyncClient) -> httpx.Response:
    """Send the request that does least."""
    return await client.get("alive")


async def rate(
    call: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]],
    clients: list[httpx.AsyncClient],
) -> float:
    """Return the calls a second when all clients call again and again."""
    start, done = time.perf_counter(), 0

    async def work(client: httpx.AsyncClient) -> None:
        nonlocal done
        while time.perf_counter() - start < SECONDS:
            (await call(client)).raise_for_status()
            done += 1

    await asyncio.gather(*map(work, clients))
    return done / (time.perf_counter() - start)


class Pages(http.server.BaseHTTPRequestHandler):
    """Pages with as many elements as their path says."""

    def do_GET(self) -> None:
        """Send a page, half buttons and half paragraphs."""
        if not self.path[1:].isdigit():  # such as the icon of a site
            self.send_error(404)
            return
        count = int(self.path[1:])
        body = "".join(f"<button>b {n}</button><p>text {n}</p>" for n in range(count // 2)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def elements() -> Curve:
    """Return the time of a step with all parts of the observation, by elements of the page."""
    with site() as address:
        limits = asyncio.run(tree_times(address))
        points = []
        with BrowserEnv() as env:
            for number, limit in zip(ELEMENTS, limits, strict=True):
                env.step(f'goto("{address}/{number}")')
                points.append((number, cost(lambda: env.step("noop(0)"), ROUNDS).time_ms, limit))
    return Curve(
        "A step by elements of the page",
        "elements",
        "ms a step",
        "Accessibility.getFullAXTree",
        points,
    )


async def tree_times(address: str) -> list[float]:
    """Return the milliseconds in which Chromium sends the whole tree."""
    times = []
    async with async_playwright() as playwright:
        browser, page, session = await launched(playwright)
        for number in ELEMENTS:
            await page.goto(f"{address}/{number}")
            await session.send("Accessibility.getFullAXTree")
            start = time.perf_counter()
            for _ in range(ROUNDS):
                await session.send("Accessibility.getFullAXTree")
            times.append(1000 * (time.perf_counter() - start) / ROUNDS)
        await browser.close()
    return times


def lines() -> Curve:
    """Return the time of a diff of which each line has changed, by lines."""
    points = []
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory, name) for name in ("old", "new")]
        for number in LINES:
            texts = [
                [f'{{"id": {n}, "{key}": {n % 7}}}' for n in range(number)]
                for key in ("value", "other")
            ]
            for file, text in zip(files, texts, strict=True):
                file.write_text("\n".join(text))
            points.append((number, *diff_times(files, texts)))
    return Curve("A diff by lines, all changed", "lines", "ms", "GNU diff", points)


def diff_times(files: list[Path], texts: list[list[str]]) -> tuple[float, float]:
    """Return the milliseconds of our diff of the texts, and of GNU diff of their files."""
    ours = cost(lambda: deque(changed_ranges(*texts), maxlen=0), ROUNDS)
    command = ["diff", *map(str, files)]
    bare = cost(lambda: subprocess.run(command, stdout=subprocess.DEVNULL), ROUNDS)
    return ours.time_ms, bare.time_ms


def main() -> None:
    """Measure, print, and write the plots."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for measure in (clients, elements, lines):
        curve = measure()
        print(f"{table_of(curve)}\n", flush=True)
        (TARGET / f"{measure.__name__}.svg").write_text(plot_of(curve, machine()), "utf-8")


if __name__ == "__main__":
    main()
