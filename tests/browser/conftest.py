"""A site on loopback, and a browser to look at it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from oh_jupyter.browser import BrowserEnv, flatten_axtree
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.testing import descendants, suspended

WORDS = "the tide was high and nobody had read the table of the harbour that day"
SHOP = """<title>Shop</title><form role=search><input type=search aria-label=Search>
  <button>Find</button></form><main><h1>Results</h1><ul>{}</ul></main>""".format(
    "".join(
        f"<li><a href=/p/{i}><h3>Product {i}</h3></a><p>{WORDS}<button>Add {i}</button></li>"
        for i in range(60)
    )
)
FORM = """<title>Order</title><h1>Order</h1><form><fieldset><legend>Who</legend>
  <label for=n>Name</label><input id=n required placeholder="Your name">
  <label for=e>Email</label><input id=e type=email aria-describedby=hint value=ada@example.org>
  <small id=hint>We write once.</small></fieldset>
  <label for=s>Size</label><select id=s><option>small<option selected>large
  <optgroup label=more><option value=xl>very large</select>
  <input type=checkbox checked aria-label=news><input type=radio name=r aria-label=one>
  <input type=radio name=r checked aria-label=two><textarea aria-label=words>a few</textarea>
  <input type=range value=30 aria-label=share><button disabled>Off</button>
  <input type=submit value=Send></form><details><summary>More</summary>inside</details>
  <progress value=3 max=10 aria-label=done></progress><p style="display:none">hidden</p>"""
THREAD = "<title>Thread</title><h1>A thread</h1>" + "".join(
    f"<article style='margin-left:{i % 5}em'><a href=/u/{i % 7}>user {i % 7}</a>"
    f"<time>{i} h</time><p>{WORDS} <em>really</em> <code>x = {i}</code></p>"
    "<a href=#reply>reply</a></article>"
    for i in range(80)
)
TABLE = """<title>Tides</title><table><caption>Tides</caption>
  <tr><th scope=col>port<th scope=col>high<th scope=col>low</tr>{}</table>""".format(
    "".join(f"<tr><td>port {i}<td>{i * 7 % 11}.{i % 10}<td>1.2</tr>" for i in range(70))
)
FRAMES = """<title>Frames</title><h1>Outside</h1>
  <iframe title=one frameborder=0 srcdoc="<p>in one<button>b</button><input value=x>"></iframe>
  <iframe title=two frameborder=0 srcdoc="<a href=#>in two</a>
    <iframe title=in frameborder=0 srcdoc='<button>deep</button>'></iframe>"></iframe>
  <div id=host></div><script>host.attachShadow({mode: 'open'}).innerHTML =
    '<label for=i>in the shadow</label><input id=i><div id=d></div>'
  host.shadowRoot.getElementById('d').attachShadow({mode: 'open'}).innerHTML =
    '<button>deeper</button>'</script>"""
LOG = "<title>Log</title><pre>" + "".join(f"<span>{i} {WORDS}\n</span>" for i in range(90))
PAGES = {
    "shop": SHOP, "form": FORM, "thread": THREAD, "table": TABLE, "frames": FRAMES, "log": LOG,
}  # fmt: skip


class Site:
    """Pages by path; some paths answer in ways of their own.

    `/late?ms=…` and `/poll?ms=…` answer late, `/never` not before the site ends, `/stalled` with
    a part of a download, `/204` and `/401` with nothing but their status.
    """

    def __init__(self) -> None:
        self.pages: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.requests: list[str] = []
        self.arrivals = threading.Condition()
        self.ended = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                with site.arrivals:
                    site.requests.append(parts.path)
                    site.arrivals.notify_all()
                if parts.path in ("/204", "/401"):
                    self.send_response(int(parts.path[1:]))
                    self.send_header("WWW-Authenticate", 'Basic realm="here"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if parts.path == "/stalled":
                    self.send_response(200)
                    self.send_header("Content-Type", "application/octet-stream")
                    self.send_header("Content-Disposition", "attachment; filename=large.bin")
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"x" * 600)
                    self.wfile.flush()
                if parts.path in ("/never", "/stalled"):
                    site.ended.wait()
                    return
                if parts.path in ("/late", "/poll"):
                    site.ended.wait(int(parse_qs(parts.query)["ms"][0]) / 1000)
                body, headers = site.pages.get(parts.path, (b"late news", {}))
                self.send_response(
                    200 if parts.path in site.pages or parts.path in ("/late", "/poll") else 404
                )
                for name, value in {"Content-Type": "text/html", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def put(self, path: str, body: str | bytes, **headers: str) -> str:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (data, named)
        return self.url(path)

    def when_asked_for_more(self, path: str, act: Callable[[], Any]) -> None:
        """Act from a thread when a path is asked for once more than now."""
        before = self.requests.count(path)

        def wait() -> None:
            with self.arrivals:
                self.arrivals.wait_for(
                    lambda: self.requests.count(path) > before or self.ended.is_set()
                )
            if not self.ended.is_set():
                act()

        threading.Thread(target=wait, daemon=True).start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self.ended.set()
        with self.arrivals:
            self.arrivals.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """Bodies of pages as sites have them."""
    return PAGES


@pytest.fixture(scope="module")
def env() -> Iterator[BrowserEnv]:
    with BrowserEnv() as env:
        yield env


@pytest.fixture
def stalled_worker() -> Callable[[], AbstractContextManager[None]]:
    """Within the block, the worker of the browser does not answer, and then does."""

    @contextlib.contextmanager
    def stalled() -> Iterator[None]:
        workers = descendants(
            lambda process: process.cmdline()[-1:] == ["oh_jupyter.browser.worker.main"]
        )
        assert workers
        with suspended(*workers):
            yield

    return stalled


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """A browser that somebody else has started; its DevTools address."""
    process = subprocess.Popen(
        [find_executable(), "--headless", "--no-sandbox", "--remote-debugging-port=0",
         f"--user-data-dir={tmp_path}", "about:blank"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("DevTools listening on "):
            break
    yield line.split()[-1]
    process.terminate()
    process.wait(60)
    process.stderr.close()


@pytest.fixture
def show(env: BrowserEnv, site: Site) -> Callable[..., dict[str, Any]]:
    """Open a page with that body, and observe it."""

    def show(body: str, path: str = "/page") -> dict[str, Any]:
        address = site.put(path, f"<!doctype html><title>t</title>{body}")
        observation = env.step(f'goto("{address}")')
        assert observation["last_action_error"] == ""
        return observation

    return show


def tree_of(observation: dict[str, Any], **options: Any) -> str:
    return flatten_axtree(
        observation["axtree_object"],
        observation["extra_element_properties"],
        with_clickable=True,
        skip_generic=False,
        **options,
    )


@pytest.fixture
def tree() -> Callable[..., str]:
    return tree_of


@pytest.fixture
def bid() -> Callable[..., str]:
    """Find the bid of the one element whose line in the tree has that text."""

    def bid(observation: dict[str, Any], text: str) -> str:
        lines = [line for line in tree_of(observation).splitlines() if text in line]
        matches = [match[1] for line in lines if (match := re.match(r"\t*\[(\w+)\]", line))]
        assert len(matches) >= 1, f"{text!r} not in\n{tree_of(observation)}"
        return matches[0]

    return bid
