"""The MCP Apps in a host that is made of the official SDK, in a real Chromium."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from pictures import take_picture
from playwright.sync_api import FrameLocator, Page, expect

from oh_jupyter.testing import LiveServer, run_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOST = Path(__file__).with_name("apps_host.mjs")
PACKAGES = (
    "@modelcontextprotocol/ext-apps",
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/core",
    "@modelcontextprotocol/server",
    "zod",
    "esbuild",
)
PAGE = """<!doctype html><meta charset="utf-8"><title>Host</title>
<style>body { font: 14px sans-serif; margin: 16px } iframe { border: 0; width: 100% }
body.dark { background: #1e1e1e }</style>
<body><script type="module" src="/host.js"></script>"""
FRAME = """
import pandas as pd
df = pd.DataFrame({
    "city": [f"City {number:03}" for number in range(200)],
    "people": [number * 37 % 1000 for number in range(200)],
    "area": [round(number / 7, 2) for number in range(200)],
    "founded": pd.date_range("1900-01-01", periods=200, freq="YS"),
})
"""
ASKS = ("--OhJupyter.confirmation=always", "--OhJupyter.approval_by_client=True")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The host's script with the SDK of npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("host")
    install = [npm, "install", "--no-audit", "--no-fund", *PACKAGES]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the SDK cannot be installed here: {installed.stderr[-300:]}")
    shutil.copy(HOST, folder)
    build = [
        "node_modules/.bin/esbuild",
        HOST.name,
        "--bundle",
        "--format=esm",
        "--outfile=host.js",
    ]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    return (folder / "host.js").read_bytes()


@contextmanager
def host_of(server: LiveServer, script: bytes) -> Iterator[str]:
    """Serve the host's page, and pass its requests on: a page may reach only its own origin."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            if self.path == "/mcp":
                return self.relay()
            kind, body = ("text/javascript", script), ("text/html", PAGE.encode())
            chosen = kind if self.path == "/host.js" else body
            self.send_response(200)
            self.send_header("Content-Type", chosen[0])
            self.end_headers()
            self.wfile.write(chosen[1])

        def do_POST(self) -> None:
            self.relay()

        def do_DELETE(self) -> None:
            self.relay()

        def relay(self) -> None:
            skipped = ("host", "origin", "referer", "cookie", "connection", "accept-encoding")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in skipped}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url, sent = f"{server.url}/oh_jupyter/mcp", headers | server.headers
            with requests.request(
                self.command, url, data=body, headers=sent, stream=True, timeout=120
            ) as response:
                self.send_response(response.status_code)
                for name in ("Content-Type", "Mcp-Session-Id"):
                    if name in response.headers:
                        self.send_header(name, response.headers[name])
                self.end_headers()
                for chunk in response.iter_content(None):
                    self.wfile.write(chunk)
                    self.wfile.flush()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()


Open = Callable[..., Page]


@pytest.fixture
def open_host(page: Page, bundle: bytes, tmp_path: Path) -> Iterator[Open]:
    """Open a host of a new server; no page may violate its frame's policy, or fail."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda note: faults.append(note.text) if note.type == "error" else None)
    page.set_viewport_size({"width": 760, "height": 560})
    opened: list[Any] = []

    def open_host(*options: str) -> Page:
        server = run_server(tmp_path, *options, environment={"OH_JUPYTER_CONFIRMATION": None})
        host = host_of(opened.append(server) or server.__enter__(), bundle)
        page.goto(opened.append(host) or host.__enter__())
        page.wait_for_selector("body[data-ready]", state="attached")
        return page

    yield open_host
    page.goto("about:blank")
    for each in reversed(opened):
        each.__exit__(None, None, None)
    assert [fault for fault in faults if "favicon" not in fault] == []


def show(page: Page, tool: str, arguments: dict[str, Any], theme: str = "light") -> FrameLocator:
    page.evaluate("theme => { document.body.className = theme }", theme)
    page.evaluate("([tool, args, theme]) => show(tool, args, theme)", [tool, arguments, theme])
    return page.frame_locator("iframe").last


def test_a_person_approves_an_edit_with_its_diff(open_host: Open, tmp_path: Path) -> None:
    target = tmp_path / "root" / "greeting.py"
    page = open_host(*ASKS)
    target.write_text('def greet(name):\n    print("Hello")\n    return name\n')
    tools = page.evaluate("modelTools")
    assert "write" in tools
    assert not {"pending_approval", "decide_approval", "table_rows", "page_picture"} & set(tools)
    edit = {
        "command": "str_replace",
        "path": str(target),
        "old_str": 'print("Hello")',
        "new_str": 'print(f"Hello, {name}!")',
    }
    app = show(page, "edit", edit)
    expect(app.locator(".oh-Diff-line.oh-mod-added")).to_contain_text("Hello, {name}!")
    expect(app.locator(".oh-Diff-line.oh-mod-removed")).to_contain_text('print("Hello")')
    expect(app.get_by_text("Reference host wants to do this.")).to_be_visible()
    expect(app.get_by_text("Rejects itself in")).to_be_visible()
    take_picture(page, "mcp-app-approval")
    app.locator(".jp-mod-accept").click()
    assert not page.evaluate("outcome").get("isError")
    assert "Hello, {name}!" in target.read_text()
    expect(app.get_by_text("Approved")).to_be_visible()


def test_a_person_rejects_a_command_with_a_reason(open_host: Open) -> None:
    page = open_host(*ASKS)
    app = show(page, "run", {"command": "rm -r build"}, "dark")
    expect(app.get_by_text("rm -r build")).to_be_visible()
    app.locator(".jp-mod-reject").click()
    app.get_by_role("textbox").fill("keep it")
    app.get_by_role("textbox").press("Enter")
    outcome = page.evaluate("outcome")
    assert outcome["isError"]
    assert "keep it" in outcome["content"][0]["text"]
    expect(app.get_by_text("Rejected")).to_be_visible()


def test_a_call_that_needs_no_approval_shows_nothing(open_host: Open) -> None:
    page = open_host("--OhJupyter.confirmation=never", "--OhJupyter.approval_by_client=True")
    app = show(page, "run", {"command": "echo hi"})
    assert page.evaluate("outcome")["content"][0]["text"].startswith("hi")
    expect(app.locator("#root")).to_be_empty()


def test_a_decided_question_disappears_while_its_call_runs(open_host: Open) -> None:
    page = open_host(*ASKS)
    app = show(page, "run", {"command": "echo here; sleep 60"})
    expect(app.locator(".jp-mod-accept")).to_be_visible()
    other = show(page, "run_ipython", {"code": "1 + 1"})
    expect(other.locator(".jp-mod-accept")).to_be_visible()
    first = page.frame_locator("iframe").first
    first.locator(".jp-mod-accept").click()
    # The command still runs.
    expect(first.locator(".jp-mod-accept")).to_have_count(0)
    expect(other.locator(".jp-mod-accept")).to_be_visible()


def test_a_table_is_sorted_filtered_and_paged(open_host: Open) -> None:
    page = open_host("--OhJupyter.confirmation=never")
    page.evaluate("code => call('run_ipython', { code })", FRAME)
    app = show(page, "show_table", {"name": "df"})
    cells = app.locator("tbody td:first-of-type")
    expect(app.get_by_text("DataFrame: 200 rows, 4 columns")).to_be_visible()
    expect(cells.first).to_have_text("City 000")
    assert page.evaluate("outcome")["content"][0]["text"] == (
        "The person sees df: DataFrame, 200 rows and 4 columns."
    )
    people = app.get_by_role("button", name="people")
    people.click()
    expect(app.get_by_role("columnheader", name="people")).to_have_attribute(
        "aria-sort", "ascending"
    )
    people.click()
    expect(app.locator("tbody td:nth-of-type(2)").first).to_have_text("999")
    app.get_by_role("button", name="Next").click()
    expect(app.get_by_role("status")).to_have_text("Rows 26 to 50 of 200")
    app.get_by_role("searchbox").fill("city 01")
    expect(app.get_by_role("status")).to_have_text("Rows 1 to 10 of 10")
    take_picture(page, "mcp-app-table")
    app.get_by_role("searchbox").fill("nowhere")
    expect(app.get_by_role("status")).to_have_text("No rows")


def test_the_picture_follows_the_page(open_host: Open) -> None:
    page = open_host("--OhJupyter.confirmation=never")

    def browse(title: str, colour: str) -> None:
        address = f"data:text/html,<title>{title}</title><body bgcolor={colour}><h1>{title}</h1>"
        answer = page.evaluate("url => call('browse', { url })", address)
        assert not answer.get("isError"), answer

    browse("First", "lightyellow")
    app = show(page, "show_page", {})
    picture = app.get_by_role("img")
    expect(app.get_by_text("Live")).to_be_visible()
    expect(app.locator(".oh-Page-address")).to_contain_text("First")
    first = picture.get_attribute("src") or ""
    assert first.startswith("data:image/jpeg;base64,")
    browse("Second", "lightblue")
    expect(picture).not_to_have_attribute("src", first)
    expect(app.locator(".oh-Page-address")).to_contain_text("Second")
    take_picture(page, "mcp-app-page")
