"""Heads of requests to the proxy: what is forwarded, and what is refused."""

from __future__ import annotations

import pytest

from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Endpoint
from oh_jupyter.sandbox.http_request import parse_request


def head(*lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


def test_a_tunnel() -> None:
    request = parse_request(head("CONNECT Example.org:443 HTTP/1.1", "Host: x", "Proxy-A: secret"))
    assert request.is_tunnel
    assert request.endpoint == Endpoint("example.org", 443)
    assert request.head == b""


def test_a_plain_request_gets_the_host_of_its_target() -> None:
    request = parse_request(
        head(
            "GET http://Example.org:80/a?b=http://c HTTP/1.1",
            "Host: metadata.internal",
            "HOST: other",
            "Proxy-Authorization: Basic secret",
            "Proxy-Connection: keep-alive",
            "Connection: keep-alive, upgrade",
            "Upgrade: websocket",
            "Accept: */*  ",
        )
    )
    assert request.endpoint == Endpoint("example.org", 80)
    assert request.length == 0
    assert request.head == head(
        "GET /a?b=http://c HTTP/1.1", "Host: example.org", "Accept: */*", "Connection: close"
    )


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        ("http://a.org", "/", "a.org"),
        ("http://a.org?q", "/?q", "a.org"),
        ("HTTP://a.org:8080/", "/", "a.org:8080"),
        ("http://[::1]:80/x", "/x", "[::1]"),
        ("http://10.0.0.1:81/x", "/x", "10.0.0.1:81"),
    ],
)
def test_targets(target: str, path: str, host: str) -> None:
    lines = parse_request(head(f"GET {target} HTTP/1.0")).head.decode().split("\r\n")
    assert lines[:2] == [f"GET {path} HTTP/1.0", f"Host: {host}"]


def test_lengths() -> None:
    first = "POST http://a.org/ HTTP/1.1"
    assert parse_request(head(first, "Content-Length: 12")).length == 12
    assert parse_request(head(first, "transfer-encoding: Chunked")).length is None


@pytest.mark.parametrize(
    "lines",
    [
        ["GET / HTTP/1.1", "Host: a.org"],
        ["GET https://a.org/ HTTP/1.1"],
        ["GET ftp://a.org/ HTTP/1.1"],
        ["GET http://user:password@a.org/ HTTP/1.1"],
        ["GET http://a.org\\@b.org/ HTTP/1.1"],
        ["GET http://a.org%00.b.org/ HTTP/1.1"],
        ["GET http://a.org\0.b.org/ HTTP/1.1"],
        ["GET http://a.org/ x HTTP/1.1"],
        ["GET http://a.org/\tx HTTP/1.1"],
        ["GET http://a.org/#x HTTP/1.1"],
        ["GET  http://a.org/ HTTP/1.1"],
        ["GET http://a.org/ HTTP/2.0"],
        ["GET http://a.org/"],
        ["", "GET http://a.org/ HTTP/1.1"],
        ["CONNECT a.org HTTP/1.1"],
        ["CONNECT http://a.org:443 HTTP/1.1"],
        ["CONNECT /var/run/docker.sock HTTP/1.1"],
        ["CONNECT unix:/var/run/docker.sock HTTP/1.1"],
        ["CONNECT a.org:443:80 HTTP/1.1"],
        ["CONNECT evil\0.pypi.org:443 HTTP/1.1"],
        ["CONNECT a.org:443\n HTTP/1.1"],
        ["GET http://a.org/ HTTP/1.1", "X: a\nHost: b"],
        ["GET http://a.org/ HTTP/1.1", "X: a\rHost: b"],
        ["GET http://a.org/ HTTP/1.1", "X: a\0"],
        ["GET http://a.org/ HTTP/1.1", "X: a", " folded"],
        ["GET http://a.org/ HTTP/1.1", "X : a"],
        ["GET http://a.org/ HTTP/1.1", ": a"],
        ["GET http://a.org/ HTTP/1.1", "no colon"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length: 1", "Content-Length: 1"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length: 1", "Transfer-Encoding: chunked"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length: +1"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length: 1, 1"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length: 0x1"],
        ["POST http://a.org/ HTTP/1.1", "Content-Length:"],
        ["POST http://a.org/ HTTP/1.1", "Transfer-Encoding: gzip, chunked"],
        ["POST http://a.org/ HTTP/1.1", "Transfer-Encoding: identity"],
        ["POST http://a.org/ HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["POST http://a.org/ HTTP/1.1", "Transfer-Encoding: \x0bchunked"],
        ["POST http://a.org/ HTTP/1.0", "Transfer-Encoding: chunked"],
    ],
    ids=ascii,
)
def test_ambiguous_requests_are_refused(lines: list[str]) -> None:
    with pytest.raises(HostError) as refusal:
        parse_request(head(*lines))
    assert refusal.value.status == 400
    assert "password" not in str(refusal.value)
