"""A proxy on a loop of its own, servers behind it, and clients that speak bytes."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oh_jupyter.background import LoopThread, start_thread
from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Endpoint, ListedHosts
from oh_jupyter.sandbox.proxy import MAX_CONNECTIONS, Proxy


class Listed(ListedHosts):
    """A list of hosts that records what the proxy asks."""

    def __init__(self, *entries: str) -> None:
        super().__init__(entries)
        self.checked: list[str] = []
        self.failures: list[str] = []

    async def check(self, endpoint: Endpoint) -> None:
        self.checked.append(str(endpoint))
        await super().check(endpoint)

    def note_failure(self, endpoint: Endpoint, error: HostError) -> None:
        self.failures.append(f"{endpoint}: {error}")


@dataclass
class Names:
    """A fake name server: each name has a list of answers, of which the last is repeated."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Website(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, notes each request, echoes bodies and redirects."""

    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, str, dict[str, str], bytes]]

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def _note(self) -> bytes:
        body = b""
        if length := self.headers.get("Content-Length"):
            body = self.rfile.read(int(length))
        elif self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        self.requests.append((self.command, self.path, dict(self.headers), body))
        return body

    def do_GET(self) -> None:
        self._note()
        if self.path.startswith("/to?"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to?"))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/hello":
            self._send(b"hello\n")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._send(self._note())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def website(folder: Path, host: str = "127.0.0.1") -> Iterator[tuple[int, type[Website]]]:
    """Yield the port and the handler of a website on an address of the loopback."""
    handler = type("Handler", (Website,), {"requests": []})

    def make(*args: Any) -> Website:
        return handler(*args, directory=str(folder))  # type: ignore[no-any-return]

    server = _Server((host, 0), make)
    start_thread(server.serve_forever, "website", 0.05)
    try:
        yield server.server_address[1], handler
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """Yield a server socket whose connections the test accepts itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


class _Server(http.server.ThreadingHTTPServer):
    """A server that lets as many connections wait as a proxy opens."""

    request_queue_size = MAX_CONNECTIONS


class RunningProxy:
    """A proxy that listens on a socket."""

    def __init__(self, path: str, *entries: str, owner: str | None = None) -> None:
        self.access, self.names = Listed(*entries), Names()
        self.proxy = Proxy(self.access, self.names.resolve)
        self.path = path
        self.loop = LoopThread("proxy")
        self.loop.submit(self.proxy.listen(path, owner)).result(10)

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        client.connect(self.path)
        return client

    def tunnel(self, endpoint: str) -> socket.socket:
        """Return a client with an open tunnel."""
        client = self.connect()
        client.sendall(f"CONNECT {endpoint} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert client.recv(1000) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        return client

    def ask(self, request: bytes) -> bytes:
        """Send bytes and return all that comes back."""
        with self.connect() as client:
            with contextlib.suppress(BrokenPipeError):  # it has answered and closed already
                client.sendall(request)
            return read_all(client)

    @property
    def open_connections(self) -> int:
        async def count() -> int:
            return self.proxy.open_connections

        return self.loop.submit(count()).result(10)

    def close(self) -> None:
        self.loop.submit(self.proxy.close()).result(10)
        self.loop.stop()


def read_all(client: socket.socket) -> bytes:
    """Return everything up to the end of a connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(65536):
            data += more
    return data


def in_parallel(count: int, call: Any) -> list[Any]:
    """Return the results of simultaneous calls on threads."""
    results: list[Any] = [None] * count

    def run(index: int) -> None:
        results[index] = call(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
