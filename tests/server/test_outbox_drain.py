"""A kernel that is killed before it has reported its changes: the server reports them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oh_jupyter.client import Fleet, RuntimeClient
from oh_jupyter.testing import run_server, wait_until


class Receiver(ThreadingHTTPServer):
    """A webhook's receiver that refuses requests until ``accepts`` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.accepts = False
        self.refused: set[str] = set()
        self.accepted: set[str] = set()


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        accepts = self.server.accepts
        (self.server.accepted if accepts else self.server.refused).add(self.path)
        self.send_response(200 if accepts else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_server_reports_changes_of_a_killed_kernel(receiver: Receiver, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/"
    environment = {"FILE_STORE_WEB_HOOK_URL": url, "XDG_STATE_HOME": str(tmp_path / "state")}

    def leave(runtime: RuntimeClient, name: str) -> int:
        cell = runtime.run_ipython("import os; os.getpid()").content
        runtime.store_write(name, b"left")
        wait_until(lambda: f"/{name}" in receiver.refused, what="the first try")
        return int(cell.partition("\n")[0])

    with (
        run_server(tmp_path, environment=environment) as server,
        Fleet(server.url, server.token, 1) as kernels,
    ):
        [result] = kernels.map(leave, ["note.txt"])
        assert result.error is None
        os.kill(result.value, signal.SIGKILL)
        receiver.accepts = True
        # Jupyter starts a fresh kernel in its place, which has not loaded oh_jupyter.
        wait_until(lambda: "/note.txt" in receiver.accepted, what="the report")
