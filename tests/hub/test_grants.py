"""Authorization requests, decisions and codes."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from oh_jupyter.errors import AuthorizationError
from oh_jupyter.hub.clients import ClientRegistry
from oh_jupyter.hub.grants import (
    CODE_SECONDS,
    MAX_PENDING,
    REQUEST_SECONDS,
    Grants,
    HubGrant,
    ReusedCodeError,
)

RESOURCE = "https://hub.example.org/services/oh-jupyter/mcp"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:-1]
REDIRECT = "http://localhost:1/cb"
PARAMS = {
    "response_type": "code",
    "redirect_uri": REDIRECT,
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "state": "s",
    "resource": RESOURCE,
}
CLIENT, _ = ClientRegistry(b"k" * 32).register({"redirect_uris": [REDIRECT]})
GRANT = HubGrant("ada", "token-of-the-hub", 1e12)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Flow:
    def __init__(self) -> None:
        self.clock = Clock()
        self.grants = Grants(RESOURCE, self.clock)

    def code(self, **params: str) -> str:
        key = self.grants.begin(CLIENT, PARAMS | params, "nonce")
        key = self.grants.logged_in(key, "nonce", GRANT)
        _, code = self.grants.decide(key, "nonce", allow=True)
        return code

    def redeem(self, code: str, client: str = CLIENT.id, **params: str) -> Any:
        form = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **params}
        request, grant = self.grants.redeem(client, form)
        assert grant == GRANT
        self.grants.redeemed(code, "family")
        return request


@pytest.fixture
def flow() -> Flow:
    return Flow()


def code_of(error: Any) -> str:
    return str(error.value.code)


def test_a_code_is_exchanged_once(flow: Flow) -> None:
    code = flow.code()
    assert flow.redeem(code).resource == RESOURCE
    with pytest.raises(ReusedCodeError) as error:
        flow.redeem(code)
    assert (error.value.code, error.value.family) == ("invalid_grant", "family")


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"code_verifier": CHALLENGE}, "invalid_grant"),
        ({"redirect_uri": "http://localhost:2/cb"}, "invalid_grant"),
        ({"redirect_uri": ""}, "invalid_grant"),
        ({"client": "other"}, "invalid_grant"),
        ({"resource": f"{RESOURCE}/big"}, "invalid_target"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ],
)
def test_a_code_needs_all_that_its_request_had(
    flow: Flow, params: dict[str, str], code: str
) -> None:
    value = flow.code()
    with pytest.raises(AuthorizationError) as error:
        flow.redeem(value, **params)
    assert code_of(error) == code
    if "client" not in params:  # another client cannot use up a code
        with pytest.raises(AuthorizationError):
            flow.redeem(value)


def test_codes_and_requests_expire(flow: Flow) -> None:
    code = flow.code()
    key = flow.grants.begin(CLIENT, PARAMS, "nonce")
    flow.clock.now += CODE_SECONDS
    with pytest.raises(AuthorizationError) as error:
        flow.redeem(code)
    assert code_of(error) == "invalid_grant"
    flow.clock.now += REQUEST_SECONDS
    with pytest.raises(AuthorizationError, match="expired"):
        flow.grants.pending(key, "nonce")


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": ""}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": f"{RESOURCE}-of-another"}, "invalid_target"),
        ({"resource": ""}, "invalid_target"),
    ],
)
def test_requests_that_are_rejected(flow: Flow, params: dict[str, str], code: str) -> None:
    with pytest.raises(AuthorizationError) as error:
        flow.grants.begin(CLIENT, PARAMS | params, "nonce")
    assert code_of(error) == code


def test_a_request_belongs_to_its_browser_and_its_step(flow: Flow) -> None:
    key = flow.grants.begin(CLIENT, PARAMS, "nonce")
    with pytest.raises(AuthorizationError, match="another browser"):
        flow.grants.logged_in(key, "other", GRANT)
    with pytest.raises(AuthorizationError, match="Log in"):
        flow.grants.decide(key, "nonce", allow=True)
    after = flow.grants.logged_in(key, "nonce", GRANT)
    with pytest.raises(AuthorizationError):  # the log-in ended the first key
        flow.grants.pending(key, "nonce")
    with pytest.raises(AuthorizationError, match="another browser"):
        flow.grants.decide(after, "", allow=True)
    assert flow.grants.decide(after, "nonce", allow=False)[1] == ""
    with pytest.raises(AuthorizationError):
        flow.grants.decide(after, "nonce", allow=True)


def test_too_many_requests_make_room_for_new_ones(flow: Flow) -> None:
    first = flow.grants.begin(CLIENT, PARAMS, "nonce")
    for _ in range(MAX_PENDING):
        last = flow.grants.begin(CLIENT, PARAMS, "nonce")
    with pytest.raises(AuthorizationError):
        flow.grants.pending(first, "nonce")
    assert flow.grants.pending(last, "nonce")
