"""Failures of a step are observations, and the browser keeps working."""

from __future__ import annotations

import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.errors import BrowserTimeoutError

pytestmark = pytest.mark.browser


@pytest.mark.thorough
def test_endless_script_is_stopped(env: BrowserEnv, site):
    page = site.put("/loop", "<title>ok</title><button onclick='for (;;) {}'>b</button>")
    env.step(f'goto("{page}")')
    seen = env.step("mouse_click(20, 15)")
    assert "did not end and was stopped" in seen["last_action_error"]
    for _ in range(2):
        seen = env.step("noop(0)")
        assert seen["last_action_error"] == ""
        assert seen["open_pages_titles"] == ["ok"]
        assert "was stopped: the page may be incomplete" in seen["notices"][0]
    assert env.step(f'goto("{page}")')["notices"] == []


@pytest.mark.slow
def test_pages_that_never_answer(env: BrowserEnv, site):
    page = site.put("/link", "<p>here</p><a href=/never?x style='font-size:99px'>never</a>")
    env.step(f'goto("{page}")')
    seen = env.step("mouse_click(50, 90)")
    assert "did not respond within 10 s; the navigation was stopped" in seen["last_action_error"]
    assert "here" in seen["text_content"]
    other = site.url("/never", "localhost")
    for _ in range(2):
        seen = env.step(f'goto("{other}")', timeout=5, include=[])
        assert seen["last_action_error"].startswith("TimeoutError: The action took longer than 5 s")
    seen = env.step("noop(0)")
    assert seen["url"] == page
    assert "here" in seen["text_content"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [
        "<meta http-equiv=refresh content=0>",
        pytest.param("<script>location.reload()</script>", marks=pytest.mark.slow),
    ],
)
def test_an_endless_page(env: BrowserEnv, site, script: str):
    fine = site.put("/fine", "<p>fine")
    page = site.put("/again", f"<p>again{script}")
    seen = env.step(f'goto("{page}")')
    assert "kept navigating to another page" in seen["last_action_error"]
    assert seen["last_action_error"].count("kept navigating") == 1
    seen = env.step(f'goto("{fine}")')
    assert seen["last_action_error"] == ""
    assert "fine" in seen["text_content"]


def test_renderer_crash(env: BrowserEnv, site):
    page = site.put("/fine", "<p>fine")
    env.step(f'goto("{page}")')
    seen = env.step('goto("chrome://crash")')
    assert seen["last_action_error"] == (
        f"Error: The page {page} crashed and its tab was closed; anything entered there is lost. "
        "Reopen it with goto; if it crashes again, use another approach."
    )
    assert seen["open_pages_urls"] == ["about:blank"]
    seen = env.step(f'goto("{page}")')
    assert seen["last_action_error"] == ""
    assert "fine" in seen["text_content"]


@pytest.mark.slow
def test_a_long_download_is_no_error(env: BrowserEnv, site):
    seen = env.step(f'goto("{site.url("/stalled")}")')
    assert seen["last_action_error"] == ""
    assert "is still running; a later step will report it" in seen["notices"][0]


def test_an_unknown_certificate(env: BrowserEnv, tmp_path):
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    names = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*made, *names], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            seen = env.step(f'goto("https://127.0.0.1:{server.server_port}/")')
        finally:
            server.shutdown()
            serving.join()
    assert "does not trust the server's certificate. Check" in seen["last_action_error"]


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_a_slow_action_times_out(env: BrowserEnv):
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
