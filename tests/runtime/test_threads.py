"""Every thread of a busy runtime has a name with its room, and runs on at breakpoints."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.events import BrowseURLAction, CmdRunAction, FileReadAction, MCPAction
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.mcp import McpServer

pytestmark = pytest.mark.thorough

SCRIPT = str(Path(__file__).parents[1] / "stdio_server.py")


class Accepting(BaseHTTPRequestHandler):
    """A webhook's receiver that accepts everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def receiver_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Accepting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.browser
def test_the_threads_of_a_busy_runtime(tmp_path: Path, receiver_url: str) -> None:
    before = set(threading.enumerate())
    settings = Settings(
        workspace_dir=str(tmp_path),
        file_store_path=str(tmp_path / "store"),
        file_store_web_hook_url=receiver_url,
        file_store_web_hook_outbox=str(tmp_path / "outbox"),
        browser_idle_seconds=600,
        plugins=(),
    )
    runtime = Runtime(settings)
    try:
        server = McpServer("small", sys.executable, (SCRIPT,), {})
        assert runtime.submit(runtime.executor.mcp.sync([server])).result(60) == ""
        (tmp_path / "a.txt").write_text("a")
        for action in (
            CmdRunAction("true"),
            FileReadAction(str(tmp_path / "a.txt")),
            MCPAction("echo", {"text": "x"}),
            BrowseURLAction("about:blank"),
        ):
            observation = runtime.submit_action(action).result(120)
            assert observation.kind != "error", observation.content
        ours = [each for each in threading.enumerate() if each not in before]
    finally:
        runtime.close()
    names = {re.sub(r"_[0-9]+$", "", each.name) for each in ours}
    assert {
        "oh-browser-idle",
        "oh-browser-reader",
        "oh-events-writer",
        "oh-runtime-loop",
        "oh-runtime-mcp",
        "oh-runtime-work",
        "oh-storage-webhook",
    } <= names
    assert [name for name in names if not re.fullmatch(r"oh-[a-z]+(-[a-z]+)+", name)] == []
    assert [each for each in ours if not getattr(each, "pydev_do_not_trace", False)] == []
