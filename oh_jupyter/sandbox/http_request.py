"""Head of a request to the proxy: strict parsing, and the head that goes to the server.

Anything that two programs could read differently is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Endpoint, parse_endpoint

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([!-~]+) HTTP/1\.([01])")
_ABSOLUTE = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_HEADER = re.compile(rf"({_TOKEN}):[ \t]*([\t -~\x80-\xff]*)")
_LENGTH = re.compile(r"[0-9]{1,18}")

_OURS = frozenset({"host", "connection", "keep-alive", "te", "upgrade"})
"""Headers for the next hop, which the proxy writes itself or leaves out."""


@dataclass(frozen=True)
class Request:
    """A parsed request.

    Attributes:
        endpoint: The server.
        is_tunnel: Whether the client asks for a tunnel (CONNECT).
        head: Head for the server, of a plain request.
        length: Length of its body; None if it is sent in chunks.
    """

    endpoint: Endpoint
    is_tunnel: bool = False
    head: bytes = b""
    length: int | None = 0


def parse_request(data: bytes) -> Request:
    """Parse the head of a request, with its empty line; raise HostError if it is not strict."""
    first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise HostError("The first line is not a request of HTTP/1.0 or 1.1.", 400)
    method, target, minor = match.groups()
    headers = []
    for line in lines:
        if (header := _HEADER.fullmatch(line)) is None:
            raise HostError("A header line is malformed.", 400)
        headers.append((header[1], header[2].rstrip(" \t")))
    if method == "CONNECT":
        return Request(parse_endpoint(target), is_tunnel=True)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise HostError(
            "This is a proxy: ask for http://HOST/PATH, or for a tunnel with CONNECT HOST:443.", 400
        )
    endpoint = parse_endpoint(absolute[1], 80)
    path = absolute[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    # The target decides, not the client's own Host.
    authority = str(endpoint).removesuffix(":80")
    others = [f"{name}: {value}" for name, value in headers if not _is_ours(name)]
    head = [
        f"{method} {path} HTTP/1.{minor}",
        f"Host: {authority}",
        *others,
        "Connection: close",
    ]
    text = "\r\n".join([*head, "", ""])
    return Request(endpoint, head=text.encode("latin-1"), length=_body_length(headers, minor))


def _is_ours(name: str) -> bool:
    return name.lower() in _OURS or name.lower().startswith("proxy-")


def _body_length(headers: list[tuple[str, str]], minor: str) -> int | None:
    """Return the length of the body, or None for chunks."""
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == "transfer-encoding"]
    if not codings and not lengths:
        return 0
    if not codings and len(lengths) == 1 and _LENGTH.fullmatch(lengths[0]):
        return int(lengths[0])
    if codings == ["chunked"] and not lengths and minor == "1":
        return None
    raise HostError("The length of the request's body is ambiguous or unknown.", 400)
