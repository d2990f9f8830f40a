"""Settings from a hub's variables, discovery documents, and the choice of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.errors import ConfigError, ServerError
from oh_jupyter.hub.clients import ClientRegistry
from oh_jupyter.hub.grants import HubGrant, PendingRequest
from oh_jupyter.hub.hub_client import NotRunningError, choose_server, may_start
from oh_jupyter.hub.pages import consent_page
from oh_jupyter.hub.state import Addresses, hub_settings

VARIABLES = {
    "JUPYTERHUB_SERVICE_PREFIX": "/base/services/oh-jupyter/",
    "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:10101",
    "JUPYTERHUB_BASE_URL": "/base/",
    "JUPYTERHUB_API_URL": "http://127.0.0.1:8081/base/hub/api",
    "JUPYTERHUB_CLIENT_ID": "service-oh-jupyter",
    "JUPYTERHUB_API_TOKEN": "secret",
}
HUB = "https://hub.example.org/base/hub/"


def settings(variables: dict[str, str], public_url: str | None = None) -> Any:
    return hub_settings(
        variables, public_url=public_url, servers_url=None, database=Path("unused.sqlite")
    )


def test_the_public_address_is_the_hubs_or_an_option() -> None:
    by_option = settings(VARIABLES, "https://hub.example.org/ignored")
    assert by_option.base == "https://hub.example.org/base/services/oh-jupyter"
    assert by_option.hub_url == HUB
    assert by_option.servers_url == "https://hub.example.org"
    assert (by_option.host, by_option.port) == ("127.0.0.1", 10101)
    public = {
        "JUPYTERHUB_PUBLIC_URL": "https://other.example/base/services/oh-jupyter/",
        "JUPYTERHUB_PUBLIC_HUB_URL": "https://other.example/base/hub/",
    }
    assert settings(VARIABLES | public).base == "https://other.example/base/services/oh-jupyter"


@pytest.mark.parametrize(
    ("url", "is_accepted"),
    [
        ("https://hub.example.org", True),
        ("http://127.0.0.1:8000", True),
        ("http://hub.example.org", False),
    ],
)
def test_clients_accept_https_and_this_machine(url: str, is_accepted: bool) -> None:
    assert settings(VARIABLES, url).is_reachable_by_clients is is_accepted


@pytest.mark.parametrize("name", sorted(VARIABLES.keys() - {"JUPYTERHUB_BASE_URL"}))
def test_a_missing_variable_is_named(name: str) -> None:
    rest = {key: value for key, value in VARIABLES.items() if key != name}
    with pytest.raises(ConfigError, match=name):
        settings(rest, "https://hub.example.org")


def test_an_unknown_public_address_is_an_error() -> None:
    with pytest.raises(ConfigError, match="--public-url"):
        settings(VARIABLES)
    with pytest.raises(ConfigError, match="is not an address"):
        settings(VARIABLES, "hub.example.org")


def test_documents_name_each_other() -> None:
    addresses = Addresses("https://hub.example.org/services/oh-jupyter")
    resource = addresses.describe_resource("big one/two")
    assert resource["resource"] == f"{addresses.resource}/big%20one%2Ftwo"
    assert resource["authorization_servers"] == [
        addresses.describe_issuer(has_documents=True)["issuer"]
    ]
    challenge = addresses.challenge("big", "invalid_token", "It has expired.")
    assert f'resource_metadata="{addresses.resource_metadata("big")}"' in challenge
    assert 'error="invalid_token"' in challenge
    assert "error" not in addresses.challenge("")


def user(**ready: bool) -> dict[str, Any]:
    models = {
        name.strip("_"): {"url": f"/user/ada/{name.strip('_')}", "ready": is_ready}
        for name, is_ready in ready.items()
    }
    return {"name": "ada", "servers": models, "scopes": ["access:servers!user=ada"]}


@pytest.mark.parametrize(
    ("model", "name", "expected"),
    [
        (user(_=True), "", ""),
        (user(big=True), "", "big"),
        (user(_=False, big=True), "", "big"),
        (user(_=True, big=True), "", ""),
        (user(_=True, big=True), "big", "big"),
    ],
)
def test_the_choice_of_a_server(model: dict[str, Any], name: str, expected: str) -> None:
    assert choose_server(model, name, HUB).name == expected


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (user(), "", r"not running \(running: none\). Start it at .*hub/home"),
        (user(_=False), "", "still starting"),
        (user(big=True, small=True), "", r"not running \(running: big, small\)"),
        (user(_=True), "big", r"'big' is not running \(running: the default one\)"),
    ],
)
def test_a_server_that_does_not_run(model: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(NotRunningError, match=message) as error:
        choose_server(model, name, HUB)
    assert error.value.server == name


def test_scopes_of_the_service() -> None:
    with pytest.raises(ServerError, match="read:servers!user"):
        choose_server({"name": "ada"}, "", HUB)
    assert not may_start(user())
    assert may_start({"name": "ada", "scopes": ["servers!user=ada"]})
    assert not may_start({"name": "ada", "scopes": ["servers!user=bob"]})


def test_the_question_escapes_a_clients_text() -> None:
    name = "<script>alert(1)</script>"
    client, _ = ClientRegistry(b"k").register(
        {"client_name": name, "redirect_uris": ["https://evil.example/?a=1&b=2"]}
    )
    request = PendingRequest(
        client, client.redirect_uris[0], None, "", "", "", HubGrant("a<b", "", 0)
    )
    page = consent_page(request, '"key', "/consent")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "evil.example" in page
    assert "a&lt;b" in page
    assert 'value="&quot;key"' in page
