"""Tokens of MCP clients: life, replacement, end, and what the disk shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_jupyter.errors import AuthorizationError, ConfigError
from oh_jupyter.hub.grants import ACCESS_SECONDS, RETRY_SECONDS, HubGrant, TokenStore

RESOURCE = "https://hub.example.org/services/oh-jupyter/mcp"
LIFETIME = 100_000.0


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> TokenStore:
    return TokenStore(tmp_path / "tokens.sqlite", clock)


def issue(store: TokenStore, lifetime: float = LIFETIME) -> tuple[str, dict[str, str]]:
    hub = HubGrant("ada", "token-of-the-hub", 1000.0 + lifetime)
    return store.issue("client", RESOURCE, hub)


def test_an_access_token_stands_for_the_hubs_token_for_an_hour(
    store: TokenStore, clock: Clock
) -> None:
    _, response = issue(store)
    grant = store.find(response["access_token"])
    assert grant is not None
    assert (grant.user, grant.client, grant.resource) == ("ada", "client", RESOURCE)
    assert grant.hub.hub_token == "token-of-the-hub"
    assert store.find(response["refresh_token"]) is None
    assert store.find("made-up") is None
    clock.now += ACCESS_SECONDS
    assert store.find(response["access_token"]) is None


def test_no_token_outlives_the_hubs(store: TokenStore, clock: Clock) -> None:
    _, response = issue(store, lifetime=60)
    assert response["expires_in"] == 60
    clock.now += 30
    response = store.refresh("client", response["refresh_token"], RESOURCE)
    assert response["expires_in"] == 30
    clock.now += 30
    with pytest.raises(AuthorizationError) as error:
        store.refresh("client", response["refresh_token"], None)
    assert error.value.code == "invalid_grant"


def test_a_refresh_token_is_replaced_and_may_be_repeated_shortly(
    store: TokenStore, clock: Clock
) -> None:
    _, first = issue(store)
    second = store.refresh("client", first["refresh_token"], None)
    assert store.find(second["access_token"])
    clock.now += RETRY_SECONDS
    third = store.refresh("client", first["refresh_token"], RESOURCE)
    clock.now += 1
    with pytest.raises(AuthorizationError, match="used before"):
        store.refresh("client", first["refresh_token"], None)
    for response in (first, second, third):  # one of them was stolen
        assert store.find(response["access_token"]) is None
    with pytest.raises(AuthorizationError):
        store.refresh("client", third["refresh_token"], None)


def test_only_its_client_refreshes_and_revokes_a_token(store: TokenStore) -> None:
    _, response = issue(store)
    with pytest.raises(AuthorizationError) as error:
        store.refresh("other", response["refresh_token"], None)
    assert error.value.code == "invalid_grant"
    with pytest.raises(AuthorizationError) as error:
        store.refresh("client", response["refresh_token"], f"{RESOURCE}/big")
    assert error.value.code == "invalid_target"
    store.revoke("other", response["refresh_token"])
    assert store.find(response["access_token"])


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_revoking_one_token_ends_those_of_the_authorization(store: TokenStore, kind: str) -> None:
    _, response = issue(store)
    _, other = issue(store)
    store.revoke("client", response[kind])
    store.revoke("client", "made-up")
    assert store.find(response["access_token"]) is None
    with pytest.raises(AuthorizationError):
        store.refresh("client", response["refresh_token"], None)
    assert store.find(other["access_token"])


def test_the_disk_shows_no_token_and_keeps_all(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "tokens.sqlite"
    store = TokenStore(path, clock)
    key = store.key("clients")
    _, response = issue(store)
    store.close()
    assert path.stat().st_mode & 0o777 == 0o600
    content = path.read_bytes()
    for secret in ("token-of-the-hub", response["access_token"], response["refresh_token"]):
        assert secret.encode() not in content
    again = TokenStore(path, clock)
    assert again.find(response["access_token"])
    assert again.key("clients") == key
    assert again.key("other") != key
    again.close()


def test_a_database_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        TokenStore(tmp_path / "missing" / "tokens.sqlite")
    (tmp_path / "text").write_text("not a database" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        TokenStore(tmp_path / "text")
