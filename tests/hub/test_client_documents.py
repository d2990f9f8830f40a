"""Clients that are known by a document, from a real HTTPS server of the test's own."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from oh_jupyter.errors import AuthorizationError
from oh_jupyter.hub.clients import (
    MAX_DOCUMENT_BYTES,
    ClientDocuments,
    _is_public,
    is_document_address,
)


def write_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@dataclass
class Site:
    port: int
    certificate: Path
    pages: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def publish(self, name: str, status: int = 200, **document: Any) -> str:
        id = f"https://localhost:{self.port}/{name}"
        full = {"client_id": id, "redirect_uris": ["http://localhost/cb"], **document}
        self.pages[f"/{name}"] = (status, json.dumps(full).encode())
        return id

    @property
    def documents(self) -> ClientDocuments:
        """Documents from this machine, too, which is no public address."""
        trust = ssl.create_default_context(cafile=str(self.certificate))
        return ClientDocuments(is_allowed=lambda address: True, trust=trust)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    certificate, key = write_certificate(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(f"{self.headers['Host']}{self.path}")
            status, content = site.pages[self.path]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/other")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    site = Site(server.server_address[1], certificate)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


def find(documents: ClientDocuments, id: str) -> Any:
    return asyncio.run(documents.find(id))


def test_a_document_is_fetched_once_and_describes_the_client(site: Site) -> None:
    id = site.publish("client.json", client_name="Robot")
    documents = site.documents
    client = find(documents, id)
    assert (client.id, client.name, client.allows("http://localhost:9/cb")) == (id, "Robot", True)
    assert find(documents, id) == client
    assert site.requests == [id.removeprefix("https://")]


@pytest.mark.parametrize(
    ("status", "document", "message"),
    [
        (404, {}, "answers 404"),
        (302, {}, "answers 302"),
        (200, {"client_id": "https://localhost/other"}, "does not name itself"),
        (200, {"token_endpoint_auth_method": "private_key_jwt"}, "only none is supported"),
        (200, {"redirect_uris": ["http://example.org/"]}, "no usable redirect address"),
        (200, {"redirect_uris": None}, "must list"),
        (200, {"client_name": "x" * MAX_DOCUMENT_BYTES}, "has more than"),
    ],
)
def test_documents_that_are_rejected(
    site: Site, status: int, document: dict[str, Any], message: str
) -> None:
    id = site.publish("client.json", status, **document)
    with pytest.raises(AuthorizationError, match=message):
        find(site.documents, id)


def test_strangers_cannot_make_the_service_look_around(site: Site) -> None:
    """Neither this machine nor its networks are asked, and certificates are checked."""
    id = site.publish("client.json")
    with pytest.raises(AuthorizationError, match="not on a public address"):
        find(ClientDocuments(), id)
    assert site.requests == []
    with pytest.raises(AuthorizationError, match="cannot be fetched"):
        find(ClientDocuments(is_allowed=lambda address: True), id)
    site.pages["/client.json"] = (200, b"[not JSON")
    with pytest.raises(AuthorizationError, match="cannot be fetched"):
        find(site.documents, id)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *(("1.1.1.1", True), ("2606:4700::1111", True)),
        *(("127.0.0.1", False), ("10.0.0.1", False), ("169.254.169.254", False)),
        *(("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False)),
        *(("::ffff:10.0.0.1", False), ("2002:a00:1::", False), ("fd00::1", False)),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert _is_public(address) is public


@pytest.mark.parametrize(
    ("id", "is_address"),
    [
        ("https://example.org/client.json", True),
        ("https://example.org/a/client", True),
        *((each, False) for each in ("https://example.org", "https://example.org/", "a.b")),
        *((each, False) for each in ("http://example.org/c", "https://example.org/a/../c")),
        *((each, False) for each in ("https://u@example.org/c", "https://example.org/c#d")),
    ],
)
def test_ids_that_are_addresses(id: str, is_address: bool) -> None:
    assert is_document_address(id) is is_address
