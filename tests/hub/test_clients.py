"""Registration of OAuth clients, and where they may be redirected to."""

from __future__ import annotations

import pytest

from oh_jupyter.errors import AuthorizationError
from oh_jupyter.hub.clients import ClientRegistry, is_usable_redirect

REGISTRY = ClientRegistry(b"k" * 32)


@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "http://localhost:33418/callback",
        "http://127.0.0.1/callback",
        "http://[::1]:5/",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
        "com.example.app:/oauth",
    ],
)
def test_addresses_that_can_be_registered(uri: str) -> None:
    client, response = REGISTRY.register({"redirect_uris": [uri], "client_name": "Robot"})
    assert REGISTRY.find(client.id) == client
    assert client.allows(uri)
    assert (response["token_endpoint_auth_method"], response["client_name"]) == ("none", "Robot")


@pytest.mark.parametrize(
    "uri",
    [
        *("http://example.org/callback", "http://localhost.example.org/", "http://127.0.0.2/"),
        *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/callback", "callback"),
        *("https://example.org/#fragment", "https://", "https://user@example.org/"),
        *("https://example.org\\@evil.example/", "https://example.org/ x", "https://exämple.org/"),
        *("https://example.org/\n", "https://example.org:port/", "http://localhost@evil.example/"),
        "https://example.org/" + "x" * 500,
    ],
)
def test_addresses_that_cannot(uri: str) -> None:
    assert not is_usable_redirect(uri)
    with pytest.raises(AuthorizationError) as error:
        REGISTRY.register({"redirect_uris": [uri]})
    assert error.value.code == "invalid_redirect_uri"


@pytest.mark.parametrize(
    ("registered", "requested", "allowed"),
    [
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", True),
        ("http://localhost/cb", "http://localhost:2/cb", True),
        ("http://localhost/cb", "http://127.0.0.1/cb", False),
        ("http://localhost/cb", "http://localhost/other", False),
        ("http://localhost/cb", "http://localhost/cb?x=1", False),
        ("http://localhost/cb", "https://localhost/cb", False),
        ("http://localhost/cb", "http://x@localhost/cb", False),
        ("http://localhost/cb", "http://localhost/cb#x", False),
        ("https://a.example/cb", "https://a.example:444/cb", False),
        ("https://a.example/cb", "https://a.example/cb/", False),
        ("https://a.example/cb", "https://a.example/cb/../x", False),
        ("cursor://a/cb", "cursor://b/cb", False),
        ("https://a.example/cb", "", False),
    ],
)
def test_a_redirect_is_exact_but_for_the_port_of_loopback(
    registered: str, requested: str, allowed: bool
) -> None:
    client, _ = REGISTRY.register({"redirect_uris": [registered]})
    assert client.allows(requested) is allowed


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ([], "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://a.example/"}, "invalid_redirect_uri"),
        ({"redirect_uris": [5]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a.example/"] * 6}, "invalid_redirect_uri"),
        (
            {"redirect_uris": ["https://a.example/"], "grant_types": ["client_credentials"]},
            "invalid_client_metadata",
        ),
        (
            {"redirect_uris": ["https://a.example/"], "response_types": ["token"]},
            "invalid_client_metadata",
        ),
    ],
)
def test_registrations_that_are_rejected(metadata: object, code: str) -> None:
    with pytest.raises(AuthorizationError) as error:
        REGISTRY.register(metadata)
    assert (error.value.code, error.value.status) == (code, 400)


def test_an_id_cannot_be_forged() -> None:
    client, _ = REGISTRY.register({"redirect_uris": ["https://a.example/"]})
    other, _ = ClientRegistry(b"o" * 32).register({"redirect_uris": ["https://a.example/"]})
    content, _, signature = client.id.partition(".")
    last = "A" if content[-1] != "A" else "Q"
    forged = ["", "x", ".", "ä.ö", other.id, content, f"{content[:-1]}{last}.{signature}"]
    forged += [f"{client.id}=", f"{client.id}\n", f"{content}.{signature[:-2]}"]
    for id in forged:
        with pytest.raises(AuthorizationError) as error:
            REGISTRY.find(id)
        assert (error.value.code, error.value.status) == ("invalid_client", 401), id
