"""Blocked origins are unreachable for every kind of request: a real browser, two servers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.channel.addresses import OriginFilter
from oh_jupyter.errors import BrowserError
from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.browser

TARGET = "the forbidden page"


class Forbidden:
    """A server that remembers what it was asked for; `/hop` at its friend's leads here."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached = threading.Event()
        forbidden = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                forbidden.asked.append(self.path)
                forbidden.reached.set()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                self.wfile.write(f"<title>{TARGET}</title>{TARGET}".encode())

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def forbidden() -> Iterator[Forbidden]:
    server = Forbidden()
    yield server
    server.close()


@pytest.fixture
def hop(site, forbidden: Forbidden) -> Iterator[str]:
    """An address of the allowed server that redirects to the forbidden one."""
    handler = site.server.RequestHandlerClass
    answer = handler.do_GET

    def do_GET(self: BaseHTTPRequestHandler) -> None:
        if not self.path.startswith("/hop"):
            answer(self)
            return
        self.send_response(302)
        self.send_header("Location", f"{forbidden.origin}{self.path}")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    handler.do_GET = do_GET
    yield site.url("/hop")
    handler.do_GET = answer


EVERYTHING = """<!doctype html><p>home</p>
<img src="{there}/img"><img src="{hop}-img"><iframe src="{there}/frame"></iframe>
<iframe src="{hop}-frame"></iframe><link rel=stylesheet href="{hop}-style">
<link rel=prefetch href="{there}/prefetch"><video src="{there}/video"></video>
<form method=post target=posted action="{there}/form"></form><iframe name=posted></iframe>
<script>
const outcome = (promise) => promise.then(() => "reached", () => "stopped");
const socket = (url) => new Promise((done) => {{
  const opened = new WebSocket(url);
  opened.onopen = opened.onerror = opened.onclose = (event) => done(event.type);
}});
const stream = (url) => new Promise((done) => {{
  const source = new EventSource(url);
  source.onopen = source.onerror = (event) => {{ source.close(); done(event.type); }};
}});
const worker = (url) => new Promise((done) => {{
  const text = `fetch("${{url}}").then(() => postMessage("reached"), () => postMessage("stopped"))`;
  new Worker(URL.createObjectURL(new Blob([text]))).onmessage = (event) => done(event.data);
}});
document.forms[0].submit();
navigator.sendBeacon("{there}/beacon", "x");
window.results = Promise.all([
  outcome(fetch("{there}/fetch")), outcome(fetch("{hop}-fetch")),
  outcome(fetch("{there}/blind", {{mode: "no-cors"}})), worker("{hop}-worker"),
  socket("{socket}/socket"), stream("{there}/stream"),
]);
</script>"""


def lists(site, forbidden: Forbidden) -> tuple[dict[str, list[str]], ...]:
    return (
        {"allowed_origins": [f"http://127.0.0.1:{site.port}"]},
        {"blocked_origins": [forbidden.origin]},
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(0, id="allowed"),
        pytest.param(1, id="blocked", marks=pytest.mark.slow),
        pytest.param(None, id="neither"),
    ],
)
def test_nothing_gets_through(site, forbidden: Forbidden, hop: str, which: int | None):
    socket = forbidden.origin.replace("http", "ws")
    page = site.put("/all", EVERYTHING.format(there=forbidden.origin, hop=hop, socket=socket))
    settings = {} if which is None else lists(site, forbidden)[which]
    with BrowserEnv(**settings) as env:
        seen = env.step(f'goto("{page}")')
        results = env.evaluate("window.results")
        env.evaluate(f"void open('{forbidden.origin}/popup')")
        popup = env.step("noop(0)")
        if which is None:
            # The same page without lists, so that the tests above it mean something.
            asked = {"/img", "/hop-img", "/hop-fetch", "/form", "/popup"}
            wait_until(lambda: asked <= set(forbidden.asked), what="a request of each kind")
        gone = env.step(f'goto("{hop}-page")')
        back = env.step(f'goto("{page}")')
    if which is None:
        assert "/hop-page" in forbidden.asked
        assert results[:2] == ["reached", "reached"]
        assert TARGET in gone["text_content"]
        return
    assert forbidden.asked == []
    assert results == ["stopped"] * 4 + ["error"] * 2
    assert f"Requests to {forbidden.origin} are blocked: it is not allowed." in seen["notices"]
    for observation in (seen, popup, gone, back):
        shown = {k: v for k, v in observation.items() if k not in ("screenshot", "set_of_marks")}
        assert TARGET not in json.dumps(shown)
    assert f"A redirect to {forbidden.origin} was stopped" in gone["last_action_error"]
    assert back["last_action_error"] == ""
    assert "home" in back["text_content"]


@pytest.mark.thorough
def test_a_way_that_leads_back_is_not_taken(site, forbidden: Forbidden, hop: str):
    """A click answered by a redirect, and a page that navigates by itself."""
    page = site.put("/click", f"<a href='{hop}-click' style='font-size:99px'>there</a>")
    jump = site.put("/jump", f"<meta http-equiv=refresh content='0;url={forbidden.origin}/meta'>")
    with BrowserEnv(**lists(site, forbidden)[0]) as env:
        env.step(f'goto("{page}")', include=[])
        seen = env.step("mouse_click(60, 60)")
        assert "A redirect to" in seen["last_action_error"]
        seen = env.step(f'goto("{jump}")')
        assert TARGET not in seen["text_content"]
    assert forbidden.asked == []


@pytest.mark.thorough
def test_other_schemes_are_no_way_around(site, forbidden: Forbidden, tmp_path: Path):
    file = tmp_path / "file.html"
    file.write_text(TARGET)
    with BrowserEnv(**lists(site, forbidden)[0]) as env:
        for address in (
            "chrome://version", "view-source:chrome://version", file.as_uri(),
            f"view-source:{forbidden.origin}/source", f"view-source:{file.as_uri()}",
        ):  # fmt: skip
            seen = env.step(f'goto("{address}")')
            assert re.search("not allowed|not open as a page", seen["last_action_error"]), address
            assert TARGET not in seen["text_content"]
            assert "Command Line" not in seen["text_content"]
    assert forbidden.asked == []


@pytest.mark.thorough
def test_a_socket_of_an_allowed_origin_opens(site):
    """Its handshake is refused by the server, not by the lists: an answer of the server."""
    page = site.put("/socket", "<p>socket")
    asked: list[str] = []
    handler = site.server.RequestHandlerClass
    answer = handler.do_GET

    def do_GET(self: BaseHTTPRequestHandler) -> None:
        asked.append(self.path)
        answer(self)

    handler.do_GET = do_GET
    try:
        with BrowserEnv(allowed_origins=[f"http://127.0.0.1:{site.port}"]) as env:
            env.step(f'goto("{page}")', include=[])
            address = f"ws://127.0.0.1:{site.port}/ws-handshake"
            env.evaluate(
                "url => new Promise(done => {"
                " const s = new WebSocket(url); s.onopen = s.onerror = () => done(1) })",
                address,
            )
    finally:
        handler.do_GET = answer
    assert "/ws-handshake" in asked


@pytest.mark.thorough
def test_in_a_browser_that_runs_already_the_page_is_emptied(
    site, forbidden: Forbidden, hop: str, running: str
):
    site.put("/home", "<p>home")
    with BrowserEnv(cdp_url=running, **lists(site, forbidden)[0]) as env:
        seen = env.step(f'goto("{forbidden.origin}/direct")')
        assert "not allowed" in seen["last_action_error"]
        assert forbidden.asked == []
        seen = env.step(f'goto("{hop}-running")')
        assert f"A page of {forbidden.origin} was emptied" in seen["last_action_error"]
        shown = {k: v for k, v in seen.items() if k not in ("screenshot", "set_of_marks")}
        assert TARGET not in json.dumps(shown)
        assert "home" in env.step(f'goto("{site.url("/home")}")')["text_content"]


def test_the_lists_in_chromiums_syntax():
    origins = OriginFilter(
        ["https://*.example.org", "localhost:8888", "http://[::1]:80"], ["https://a.example.org"]
    )
    *_, bypass, proxy, rules = origins.arguments()
    assert bypass.partition("=")[2].split(";") == [
        "<-loopback>", "https://*.example.org:443", "wss://*.example.org:443", "localhost:8888",
        "http://[::1]:80", "ws://[::1]:80",
    ]  # fmt: skip
    assert proxy == "--proxy-server=blocked.invalid:1"
    assert "MAP a.example.org:443 ~NOTFOUND" in rules
    assert OriginFilter([], []).arguments() == []


@pytest.mark.parametrize("text", ["https://me@example.org", "exa?ple.org", "example.org#x"])
def test_an_ambiguous_origin_is_refused(text: str):
    with pytest.raises(BrowserError, match="is not an origin"):
        BrowserEnv(blocked_origins=[text])
