"""Cost of a browser step, as ratios to raw Playwright in the same run, and its freshness.

Run it with ``python tests/benchmarks/bench_browser.py``. The baseline does the action, then
fetches screenshot, DOM snapshot, accessibility tree and text at the same time, and waits for
nothing; BrowserEnv also waits for effects, gives bids, measures every element, draws the
marks, converts the text and brings it all through a pipe.

BrowserGym is measured as well where it is installed, or where BENCH_BROWSERGYM names a Python
that has it together with oh_jupyter's own dependencies.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
from playwright.async_api import Page, async_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.wire import TREE_PARTS

ROUNDS = 9
GYM_ROUNDS = 3
START_ROUNDS = 3
MEMORY_STEPS = int(os.environ.get("BENCH_MEMORY_STEPS", "500"))
SMALL = "<!doctype html><title>s</title><h1>Small</h1><input><button>b</button>" + "<p>line" * 20
LARGE = "<!doctype html>" + "".join(
    f"<div><a href=#{i}>link {i}</a><span>text {i}</span></div>" for i in range(1667)
)
FRAMES = "<!doctype html>" + "<iframe src=/small></iframe>" * 4
ROWS = "<!doctype html>" + "".join(
    f"<div><a href=#{i}>link {i}</a><span>text {i}</span></div>" for i in range(6667)
)
WORDS = "the tide was high and nobody had read the table of the harbour " * 16
LINE = "the tide was high and nobody had read the table of the harbour\n"
PAGES = {"/small": SMALL, "/large": LARGE, "/frames": FRAMES}
HUGE_PAGES = {
    "20,000 elements": ("/rows", lambda: ROWS),
    "11 MB in one text": ("/log", lambda: f"<!doctype html><pre>{LINE * 170_000}</pre>"),
    "50 MB of text": ("/words", lambda: "<!doctype html>" + f"<p>{WORDS}</p>" * 49_000),
}
HUGE_STEPS = 5
HUGE_TIMEOUT_MS = 120_000


EFFECTS = {
    "timer 50 ms": "setTimeout(done, 50)",
    "timer 400 ms": "setTimeout(done, 400)",
    "fetch 200 ms": "fetch('/late?ms=200').then(done)",
    "fetch 1 s": "fetch('/late?ms=1000').then(done)",
    "fetch 2 s": "fetch('/late?ms=2000').then(done)",
    "timer, fetch, timer 0.8 s": "setTimeout(() => fetch('/late?ms=400').then(() => "
    "setTimeout(done, 200)), 200)",
    "page that takes 1 s": "location = '/late?ms=1000'",
    "page that takes 2 s": "location = '/late?ms=2000'",
}
"""What a click sets off, after which ``effect`` is in the page."""


def effect_page(script: str) -> str:
    return f"""<!doctype html><title>e</title><button onclick="{script}">go</button><p id=p>-</p>
    <script>const done = () => {{ document.getElementById('p').textContent = 'effect' }}</script>"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/late":
            time.sleep(int(parse_qs(parts.query)["ms"][0]) / 1000)
            PAGES[self.path] = "effect"
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
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


async def look(page: Page, session: Any) -> None:
    """Fetch what the baseline reads after each action."""
    await asyncio.gather(
        page.screenshot(),
        session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []}),
        session.send("Accessibility.getFullAXTree"),
        page.inner_text("body"),
    )


def prepared(env: BrowserEnv, address: str, calls: str) -> str:
    """Open a page, and put its bids into the calls."""
    seen = env.step(f'goto("{address}")')
    calls = calls.replace("{button}", bid_of(seen, "button"))
    return calls.replace("{input}", bid_of(seen, "textbox"))


def stepped(env: BrowserEnv, calls: str, include: tuple[str, ...] | None) -> None:
    seen = env.step(calls, include=include, nearby=include is not None)
    assert seen["last_action_error"] == "", seen["last_action_error"]


async def seconds(work: Awaitable[Any]) -> float:
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin


async def starts(site: str) -> tuple[float, float]:
    """Seconds until the first page is observed: the baseline's, and ours."""
    measured: tuple[list[float], list[float]] = ([], [])
    for _ in range(START_ROUNDS):
        begin = time.perf_counter()
        async with async_playwright() as playwright:
            _, page, session = await launched(playwright)
            await page.goto(f"{site}/small")
            await look(page, session)
            measured[0].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        with BrowserEnv() as env:
            await asyncio.to_thread(env.step, f'goto("{site}/small")')
            measured[1].append(time.perf_counter() - begin)
    return statistics.median(measured[0]), statistics.median(measured[1])


async def launched(playwright: Any) -> tuple[Any, Page, Any]:
    browser = await playwright.chromium.launch(
        executable_path=find_executable(), chromium_sandbox=os.geteuid() != 0
    )
    context = await browser.new_context(viewport={"width": 1280, "height": 720})
    page = await context.new_page()
    return browser, page, await context.new_cdp_session(page)


async def compared(site: str) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds of each step: the baseline's, ours, and ours with the parts of the wire.

    They take turns, so that whatever else the machine does meets all of them.
    """
    times: tuple[dict[str, float], dict[str, float], dict[str, float]] = ({}, {}, {})
    async with async_playwright() as playwright:
        browser, page, session = await launched(playwright)
        with BrowserEnv() as env:
            for name, path, action, calls in steps(site):
                await page.goto(site + path)
                await look(page, session)
                calls = await asyncio.to_thread(prepared, env, site + path, calls)
                measured: tuple[list[float], list[float], list[float]] = ([], [], [])
                for _ in range(ROUNDS):
                    begin = time.perf_counter()
                    await action(page)
                    await look(page, session)
                    measured[0].append(time.perf_counter() - begin)
                    for column, include in ((1, None), (2, TREE_PARTS)):
                        work = asyncio.to_thread(stepped, env, calls, include)
                        measured[column].append(await seconds(work))
                for column in range(3):
                    times[column][name] = statistics.median(measured[column])
        await browser.close()
    return times


def bid_of(seen: dict[str, Any], role: str) -> str:
    nodes = seen["axtree_object"]["nodes"]
    matches = [n for n in nodes if n["role"]["value"] == role and "browsergym_id" in n]
    return str(matches[0]["browsergym_id"]) if matches else ""


def fresh(site: str, step: Callable[[str], dict[str, Any]]) -> dict[str, tuple[bool, float]]:
    """Whether each effect is in the observation, and after how many seconds."""
    outcome = {}
    for name, script in EFFECTS.items():
        PAGES["/effect"] = effect_page(script)
        seen = step(f'goto("{site}/effect")')
        start = time.perf_counter()
        seen = step(f'click("{bid_of(seen, "button")}")')
        outcome[name] = ("effect" in seen["text_content"], time.perf_counter() - start)
    return outcome


def kind_of(process: psutil.Process) -> str:
    """Say what a process is to the browser."""
    command = process.cmdline()
    kind = next((part[7:] for part in command if part.startswith("--type=")), "")
    if kind:
        return {"renderer": "pages", "utility": "network, storage"}.get(kind, "rest of Chromium")
    if "run-driver" in command:
        return "driver"
    if "--remote-debugging-pipe" in command:
        return "browser"
    return "worker" if command[-1:] == ["oh_jupyter.browser.worker.main"] else "rest"


def memory_by_kind(*more: psutil.Process) -> Counter[str]:
    """Memory of the browser's processes in bytes, by kind; shared pages count once.

    Args:
        more: Processes that count as the worker.
    """
    memory: Counter[str] = Counter()
    for process in [*psutil.Process().children(recursive=True), *more]:
        with contextlib.suppress(psutil.Error):
            kind = "worker" if process in more else kind_of(process)
            memory[kind] += process.memory_full_info().pss
    return memory


async def base_memory(site: str) -> tuple[Counter[str], Counter[str]]:
    """Memory of the baseline after ten steps, and after many."""
    async with async_playwright() as playwright:
        browser, page, session = await launched(playwright)
        for number in range(MEMORY_STEPS):
            await page.goto(f"{site}/{('small', 'frames')[number % 2]}")
            await look(page, session)
            if number == 10:
                first = memory_by_kind(psutil.Process())
        last = memory_by_kind(psutil.Process())
        await browser.close()
    return first, last


def memory(site: str) -> tuple[Counter[str], Counter[str]]:
    """Memory of ours after ten steps, and after many."""
    with BrowserEnv() as env:
        for number in range(MEMORY_STEPS):
            env.step(f'goto("{site}/{("small", "frames")[number % 2]}")')
            if number == 10:
                first = memory_by_kind()
        return first, memory_by_kind()


def print_memory(
    base: tuple[Counter[str], Counter[str]], ours: tuple[Counter[str], Counter[str]]
) -> None:
    print(f"\n{f'memory in MB, after 10 and {MEMORY_STEPS} steps':40}", end="")
    print(f"{'raw Playwright':>22}{'BrowserEnv':>22}")
    for kind in sorted(set(ours[1]) | set(base[1]), key=lambda kind: -ours[1][kind]):
        cells = ((each[0][kind] >> 20, each[1][kind] >> 20) for each in (base, ours))
        print(f"{kind:40}" + "".join(f"{f'{first} -> {last}':>22}" for first, last in cells))
    totals = ((each[0].total() >> 20, each[1].total() >> 20) for each in (base, ours))
    print(f"{'all':40}" + "".join(f"{f'{first} -> {last}':>22}" for first, last in totals))


async def base_huge(address: str) -> tuple[float, float, int]:
    """Seconds of goto and of a screenshot, and bytes, of the baseline; more takes gigabytes."""
    async with async_playwright() as playwright:
        browser, page, _ = await launched(playwright)
        begin = time.perf_counter()
        await page.goto(address, timeout=HUGE_TIMEOUT_MS)
        first = time.perf_counter() - begin
        await page.screenshot(timeout=HUGE_TIMEOUT_MS)
        later = [await seconds(page.screenshot(timeout=HUGE_TIMEOUT_MS)) for _ in range(HUGE_STEPS)]
        used = memory_by_kind(psutil.Process()).total()
        await browser.close()
    return first, statistics.median(later), used


def huge(address: str) -> tuple[float, float, int]:
    """Seconds of goto and of a step once it is loaded, and bytes, of ours as on the wire."""
    with BrowserEnv() as env:
        env.start()
        begin = time.perf_counter()
        stepped(env, f'goto("{address}")', TREE_PARTS)
        first = time.perf_counter() - begin
        env.evaluate(
            "() => document.readyState === 'complete' || "
            "new Promise(done => addEventListener('load', () => done(true)))"
        )
        stepped(env, "noop(0)", TREE_PARTS)
        later = []
        for _ in range(HUGE_STEPS):
            begin = time.perf_counter()
            stepped(env, "noop(0)", TREE_PARTS)
            later.append(time.perf_counter() - begin)
        return first, statistics.median(later), memory_by_kind().total()


def print_huge(site: str) -> None:
    print(f"\n{'huge pages: goto, a later step, memory':40}", end="")
    print(f"{'raw, only a screenshot':>32}{'BrowserEnv':>32}")
    for name, (path, page) in HUGE_PAGES.items():
        PAGES[path] = page()
        cells = ""
        for first, later, used in (asyncio.run(base_huge(site + path)), huge(site + path)):
            cells += f"{f'{first:.2f} s, {later:.2f} s, {used >> 20} MB':>32}"
        print(f"{name:40}{cells}")


def gym(site: str) -> dict[str, Any]:
    """The same steps and effects by BrowserGym, as OpenHands starts it."""
    from oh_jupyter.browser.channel.pipe import LaunchSettings
    from oh_jupyter.browser.evaluation.gym_worker import GymEpisode

    start = time.perf_counter()
    episode = GymEpisode(
        LaunchSettings(
            task="browsergym/openended",
            executable=find_executable(),
            sandbox=os.geteuid() != 0,
        )
    )
    episode.step(f'goto("{site}/small")', [])
    figures: dict[str, Any] = {"start": time.perf_counter() - start, "times": {}}
    for name, path, _, calls in steps(site):
        seen = episode.step(f'goto("{site}{path}")', [])
        calls = calls.replace("{button}", bid_of(seen, "button"))
        calls = calls.replace("{input}", bid_of(seen, "textbox"))
        measured = []
        for _ in range(GYM_ROUNDS):
            begin = time.perf_counter()
            episode.step(calls, [])
            measured.append(time.perf_counter() - begin)
        figures["times"][name] = statistics.median(measured)
    # The pages of the effects are served by the parent process.
    figures["fresh"] = {}
    for name in EFFECTS:
        seen = episode.step(f'goto("{site}/effects/{list(EFFECTS).index(name)}")', [])
        start = time.perf_counter()
        seen = episode.step(f'click("{bid_of(seen, "button")}")', [])
        figures["fresh"][name] = ("effect" in seen["text_content"], time.perf_counter() - start)
    episode.close()
    return figures


def gym_figures(site: str) -> dict[str, Any] | None:
    """Measure BrowserGym in a process of its own, if there is one."""
    python = os.environ.get("BENCH_BROWSERGYM")
    if not python and find_spec("browsergym") is None:
        return None
    for number, script in enumerate(EFFECTS.values()):
        PAGES[f"/effects/{number}"] = effect_page(script)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [python or sys.executable, __file__, "--browsergym", site],
        env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def print_times(base: dict[str, float], columns: list[tuple[str, dict[str, float]]]) -> None:
    print(f"{'step':26}{'raw Playwright':>16}" + "".join(f"{name:>22}" for name, _ in columns))
    for name, baseline in base.items():
        cells = "".join(
            f"{times[name] * 1000:9.0f} ms {times[name] / baseline:6.2f} x "
            if name in times
            else " " * 22
            for _, times in columns
        )
        print(f"{name:26}{baseline * 1000:13.0f} ms{cells}")


def print_freshness(columns: list[tuple[str, dict[str, Any]]]) -> None:
    print(f"\n{'is it in the observation?':26}" + "".join(f"{name:>22}" for name, _ in columns))
    for name in EFFECTS:
        cells = ""
        for _, outcome in columns:
            is_fresh, seconds = outcome[name]
            cells += f"{('yes' if is_fresh else 'NO') + f' {seconds:6.2f} s':>22}"
        print(f"{name:26}{cells}")


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}"
    start = "start and first page"
    base_start, whole_start = asyncio.run(starts(site))
    base, whole, wire = asyncio.run(compared(site))
    columns = [("all parts", {start: whole_start, **whole}), ("parts of the wire", wire)]
    with BrowserEnv() as env:
        freshness = [("BrowserEnv", fresh(site, env.step))]
    theirs = gym_figures(site)
    if theirs is not None:
        columns.append(("BrowserGym", {start: theirs["start"], **theirs["times"]}))
        freshness.append(("BrowserGym", theirs["fresh"]))
    print_times({start: base_start, **base}, columns)
    print_freshness(freshness)
    print_memory(asyncio.run(base_memory(site)), memory(site))
    print_huge(site)
    server.shutdown()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--browsergym"]:
        print(json.dumps(gym(sys.argv[2])))
    else:
        main()
