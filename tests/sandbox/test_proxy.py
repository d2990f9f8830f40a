"""The proxy by itself: what it reaches, what it refuses, and its limits."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.sandbox import proxy as module
from oh_jupyter.testing import wait_until
from tests.sandbox.proxied import RunningProxy, in_parallel, listening, read_all, website

LOOPBACK = "127.0.0.0/8"
ENTRIES = ("*.test.example", "test.example", LOOPBACK)
"""Listed hosts; the ports are added where a test knows them."""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningProxy]:
    made = RunningProxy(str(tmp_path / "proxy"), *ENTRIES)
    yield made
    made.close()


def list_port(running: RunningProxy, port: int) -> None:
    running.access.entries = tuple(f"{entry}:{port}" for entry in ENTRIES)


def get(port: int, path: str = "/hello", host: str = "test.example") -> bytes:
    return f"GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_a_plain_request(running: RunningProxy, tmp_path: Path) -> None:
    running.names.answers["test.example"] = [["127.0.0.1"]]
    with website(tmp_path) as (port, site):
        list_port(running, port)
        reply = running.ask(get(port))
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert reply.endswith(b"hello\n")
    ((_, path, headers, _),) = site.requests
    assert (path, headers["Host"]) == ("/hello", f"test.example:{port}")
    assert stat.S_IMODE(os.stat(running.path).st_mode) == 0o600


def test_a_tunnel_copies_both_ways_and_half_closes(running: RunningProxy) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        list_port(running, port)
        with running.tunnel(f"127.0.0.1:{port}") as client, server.accept()[0] as connection:
            client.sendall(b"ping")
            client.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b"ping"
            connection.sendall(b"pong")
            connection.close()
            assert read_all(client) == b"pong"
    wait_until(lambda: running.open_connections == 0)


@pytest.mark.parametrize(
    ("request_line", "status", "words"),
    [
        ("CONNECT other.example:443 HTTP/1.1", 403, "it is not listed"),
        ("CONNECT test.example:22 HTTP/1.1", 403, "it is not listed"),
        ("CONNECT evil\0.test.example:443 HTTP/1.1", 400, "not a request"),
        ("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1", 400, "not a plain IPv6 address"),
        ("CONNECT [::1]:443 HTTP/1.1", 403, "it is not listed"),
        ("CONNECT 2130706433:443 HTTP/1.1", 400, "not an address in its usual form"),
        ("CONNECT unix:/run/docker.sock HTTP/1.1", 400, "not HOST:PORT"),
        ("CONNECT 169.254.169.254:80 HTTP/1.1", 403, "it is not listed"),
        ("GET http://metadata.google.internal/ HTTP/1.1", 403, "it is not listed"),
        ("GET /hello HTTP/1.1", 400, "This is a proxy"),
        ("SSH-2.0-OpenSSH_9.2", 400, "not a request"),
    ],
    ids=ascii,
)
def test_refusals(running: RunningProxy, request_line: str, status: int, words: str) -> None:
    reply = running.ask(f"{request_line}\r\nHost: test.example\r\n\r\n".encode())
    first, _, rest = reply.decode().partition("\r\n")
    assert first.startswith(f"HTTP/1.1 {status} ")
    assert words in first, first
    sentence = rest.partition("\r\n\r\n")[2]
    assert words in sentence
    assert sentence.count("\n") == 1
    assert running.names.asked == []


def test_all_addresses_of_a_name_are_checked(running: RunningProxy) -> None:
    for answers in (["169.254.169.254"], ["93.184.216.34", "10.0.0.1"], ["::1"], ["fe80::1%eth0"]):
        running.names.answers["test.example"] = [answers]
        reply = running.ask(b"CONNECT test.example:443 HTTP/1.1\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 403 test.example:443 is the address "), reply
        assert b"not on the public internet" in reply
    assert len(running.access.failures) == 4


def test_a_name_is_resolved_once_and_that_address_is_dialled(
    running: RunningProxy, tmp_path: Path
) -> None:
    with website(tmp_path) as (port, site):
        list_port(running, port)
        running.names.answers["test.example"] = [["127.0.0.1"], ["10.0.0.1"]]
        assert b" 200 " in running.ask(get(port))
        assert running.names.asked == ["test.example"]
        assert b" 403 " in running.ask(get(port))
        assert len(site.requests) == 1


def test_another_address_is_tried(running: RunningProxy, tmp_path: Path) -> None:
    running.names.answers["test.example"] = [["127.0.0.9", "127.0.0.1"]]
    with website(tmp_path) as (port, _):
        list_port(running, port)
        assert b" 200 " in running.ask(get(port))


def test_a_second_request_on_a_connection_is_not_forwarded(
    running: RunningProxy, tmp_path: Path
) -> None:
    running.names.answers["test.example"] = [["127.0.0.1"]]
    with website(tmp_path) as (port, site):
        list_port(running, port)
        hidden = get(port, "/hidden", "other.example")
        running.ask(get(port) + hidden)
        running.ask(
            f"POST http://test.example:{port}/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nab".encode()
            + hidden
        )
        running.ask(
            f"POST http://test.example:{port}/ HTTP/1.1\r\nContent-Length: 5\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()
            + hidden
        )
        paths = [path for _, path, _, _ in site.requests]
    assert "/hidden" not in paths


def test_bodies_in_chunks(running: RunningProxy, tmp_path: Path) -> None:
    running.names.answers["test.example"] = [["127.0.0.1"]]
    with website(tmp_path) as (port, site):
        list_port(running, port)
        first = (
            f"POST http://test.example:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
        whole = b"5;name=value\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"
        assert running.ask(first + whole).endswith(b"hello!")
        for malformed in (b"5\r\nhelloX\r\n", b"-1\r\n", b"0x5\r\nhello\r\n", b"5" * 300 + b"\r\n"):
            assert b"200" not in running.ask(first + malformed)
        assert [body for *_, body in site.requests if body] == [b"hello!"]


def test_a_long_head(running: RunningProxy) -> None:
    reply = running.ask(b"GET http://test.example/ HTTP/1.1\r\nX: " + b"x" * module.MAX_HEAD_BYTES)
    assert reply.startswith(b"HTTP/1.1 431 The head of the request is longer than 32 KiB")


def test_a_name_without_an_address(running: RunningProxy) -> None:
    reply = running.ask(b"CONNECT test.example:443 HTTP/1.1\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 502 The name test.example cannot be resolved.")


def test_a_closed_port(running: RunningProxy) -> None:
    with listening() as server:
        port = server.getsockname()[1]
    list_port(running, port)
    reply = running.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
    assert reply.startswith(f"HTTP/1.1 502 127.0.0.1:{port} cannot be reached: ".encode())


def test_time_limits(running: RunningProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "RESOLVE_SECONDS", "CONNECT_SECONDS", "IDLE_SECONDS"):
        monkeypatch.setattr(module, name, 0.2)
    assert running.ask(b"GET ").startswith(b"HTTP/1.1 408 ")

    async def never(host: str, port: int) -> list[str]:
        import asyncio

        await asyncio.get_running_loop().create_future()
        return []

    monkeypatch.setattr(running.proxy, "_resolve", never)
    reply = running.ask(b"CONNECT test.example:443 HTTP/1.1\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 504 The name test.example was not resolved within 0.2 s.")
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        list_port(running, port)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        reply = running.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert reply.startswith(f"HTTP/1.1 504 127.0.0.1:{port} does not answer".encode())
        for filler in fillers:
            filler.close()
    with listening() as server:
        list_port(running, server.getsockname()[1])
        client = running.tunnel(f"127.0.0.1:{server.getsockname()[1]}")
        with client, server.accept()[0] as connection:
            assert read_all(client) == b""
            assert read_all(connection) == b""
    wait_until(lambda: running.open_connections == 0)


def test_traffic_in_one_direction_keeps_a_tunnel(
    running: RunningProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 1.0)
    with listening() as server:
        list_port(running, server.getsockname()[1])
        client = running.tunnel(f"127.0.0.1:{server.getsockname()[1]}")
        with client, server.accept()[0] as connection:
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                connection.sendall(b"x")
                assert client.recv(1) == b"x"
            connection.close()
            assert read_all(client) == b""


def test_too_many_connections(running: RunningProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 3)
    clients = [running.connect() for _ in range(3)]
    wait_until(lambda: running.open_connections == 3)
    reply = running.ask(b"")
    assert reply.startswith(b"HTTP/1.1 503 The sandbox has 3 connections open")
    for client in clients:
        client.close()
    wait_until(lambda: running.open_connections == 0)
    assert running.ask(b"x\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_many_connections_at_once(running: RunningProxy, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    running.names.answers["test.example"] = [["127.0.0.1"]]
    with website(tmp_path) as (port, _):
        list_port(running, port)
        replies = in_parallel(60, lambda index: running.ask(get(port, "/file")))
    assert {len(reply.partition(b"\r\n\r\n")[2]) for reply in replies} == {300_000}
    wait_until(lambda: running.open_connections == 0)


def test_a_slow_reader_slows_the_sender(running: RunningProxy) -> None:
    with listening() as server:
        list_port(running, server.getsockname()[1])
        client = running.tunnel(f"127.0.0.1:{server.getsockname()[1]}")
        with client, server.accept()[0] as connection:
            connection.settimeout(1)
            sent = 0
            with contextlib.suppress(TimeoutError):
                while sent < 200_000_000:
                    sent += connection.send(b"x" * 1_000_000)
            # Buffers of the system's sockets are the most of it.
            assert sent < 50_000_000
            client.close()
            with contextlib.suppress(ConnectionError):
                while True:
                    connection.sendall(b"x" * 1_000_000)
    wait_until(lambda: running.open_connections == 0)


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_side_that_vanishes_leaves_nothing(running: RunningProxy, side: str) -> None:
    with listening() as server:
        list_port(running, server.getsockname()[1])
        client = running.tunnel(f"127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        gone, other = (client, connection) if side == "client" else (connection, client)
        gone.close()
        assert read_all(other) == b""
        other.close()
    wait_until(lambda: running.open_connections == 0)


def test_a_client_that_gives_up_ends_its_request(running: RunningProxy) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        list_port(running, port)
        client = running.connect()
        client.sendall(get(port, host="127.0.0.1"))
        with server.accept()[0] as connection:
            assert connection.recv(1000).startswith(b"GET /hello HTTP/1.1\r\n")
            client.close()
            assert read_all(connection) == b""
    wait_until(lambda: running.open_connections == 0)


def test_its_end_ends_all_connections(tmp_path: Path) -> None:
    running = RunningProxy(str(tmp_path / "proxy"), *ENTRIES)
    with listening() as server:
        list_port(running, server.getsockname()[1])
        client = running.tunnel(f"127.0.0.1:{server.getsockname()[1]}")
        idle = running.connect()
        with client, idle, server.accept()[0] as connection:
            wait_until(lambda: running.open_connections == 2)
            running.close()
            for each in (client, idle, connection):
                assert read_all(each) == b""
        with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
            late.connect(running.path)


def test_credentials_are_never_logged(
    running: RunningProxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running.names.answers["test.example"] = [["127.0.0.1"]]
    with website(tmp_path) as (port, _):
        list_port(running, port)
        for target in ("http://test.example:%d/hello?key=secret", "http://a:secret@test.example/"):
            request = f"GET {target.replace('%d', str(port))} HTTP/1.1\r\nAuthorization: secret\r\n"
            reply = running.ask(f"{request}Proxy-Authorization: Basic secret\r\n\r\n".encode())
            assert b"secret" not in reply
        running.ask(
            b"POST http://test.example/ HTTP/1.1\r\nCookie: secret\r\nContent-Length: x\r\n\r\n"
        )
    text = f"{caplog.text} {running.access.checked} {running.access.failures}"
    assert "secret" not in text
