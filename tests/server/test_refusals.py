"""Requests that are refused before they are read, and identity providers of other people."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.auth.identity import IdentityProvider, User

RUN = {"action": {"action": "run", "args": {"command": "echo let in"}}}
FORM = {"file": ("name", b"contents")}


class HubLikeProvider(IdentityProvider):
    """One that looks at nothing of Jupyter's own, as JupyterHub's does."""

    def get_user(self, handler: Any) -> User | None:
        known = handler.request.headers.get("Authorization") == "of our own"
        return User(username="somebody") if known else None

    def is_token_authenticated(self, handler: Any) -> bool:
        return handler.request.headers.get("Authorization") == "of our own"


@pytest.mark.server_config(ServerApp={"identity_provider_class": HubLikeProvider})
class TestAnotherIdentityProvider:
    async def test_it_and_the_session_key_let_in(
        self, mcp_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SESSION_API_KEY", "the-session-key")
        async with httpx.AsyncClient(base_url=mcp_url, timeout=60) as client:
            for headers in (
                {"Authorization": "of our own"},
                {"X-Session-API-Key": "the-session-key"},
            ):
                assert (await client.get("/alive", headers=headers)).status_code == 200
                answer = await client.post("/execute_action", json=RUN, headers=headers)
                assert answer.json()["content"] == "let in"
            for headers in ({}, {"X-Session-API-Key": "another"}):
                assert (await client.get("/alive", headers=headers)).status_code == 403
                answer = await client.post("/execute_action", json=RUN, headers=headers)
                assert answer.status_code == 403


@pytest.mark.shared_server
@pytest.mark.parametrize("headers", [{}, {"Authorization": "token wrong"}])
async def test_a_missing_token_is_reported_with_instructions(
    mcp_url: str, headers: dict[str, str]
) -> None:
    async with httpx.AsyncClient(base_url=mcp_url, timeout=60, headers=headers) as client:
        for answer in (await client.get("/alive"), await client.post("/execute_action", json=RUN)):
            assert answer.status_code == 403
            assert "token is missing or wrong" in answer.json()["detail"]
            assert "Authorization: token" in answer.json()["detail"]
            client.cookies.clear()
        client.cookies.set("_xsrf", "of-a-page")
        answer = await client.post("/execute_action", json=RUN)
        assert (answer.status_code, "_xsrf" in answer.json()["detail"]) == (403, True)


@pytest.mark.server_config(OhJupyter={"rate_limit": 1})
class TestRateLimit:
    async def test_refused_requests_break_no_connection(
        self, mcp_url: str, jp_auth_header: dict[str, str]
    ) -> None:
        statuses = []
        async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
            for _ in range(40):
                answer = await client.get(f"{mcp_url}/alive")
                statuses.append(answer.status_code)
                if answer.status_code == 429:
                    assert answer.headers["Connection"] == "close"
        assert set(statuses) == {200, 429}


async def test_a_refused_body_breaks_no_connection(
    mcp_url: str, jp_auth_header: dict[str, str]
) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for _ in range(10):
            client.cookies.clear()  # of a login by the token
            for method, path in (("GET", "alive"), ("POST", "list_files")):
                address, form = f"{mcp_url}/{path}", {"json": {}} if method == "POST" else {}
                wrong = {"Authorization": "token wrong"}
                answer = await client.request(method, address, headers=wrong, **form)
                assert answer.status_code == 403
            answer = await client.get(f"{mcp_url}/alive", headers=jp_auth_header)
            assert answer.status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_only_the_right_method_begins_an_upload(
    mcp_url: str, jp_auth_header: dict[str, str], jp_serverapp: Any, tmp_path: Path, method: str
) -> None:
    params = {"destination": str(tmp_path / "made")}
    async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
        address = f"{mcp_url}/upload_file"
        answer = await client.request(method, address, params=params, files=FORM)
    assert answer.status_code == 405
    assert not (tmp_path / "made").exists()
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


async def test_no_address_is_logged_with_its_token(
    mcp_url: str, jp_serverapp: Any, caplog: pytest.LogCaptureFixture
) -> None:
    token = jp_serverapp.identity_provider.token
    caplog.set_level(logging.INFO)
    async with httpx.AsyncClient(timeout=60) as client:
        for path in ("nowhere", "kernels/none/alive", "requests/none", "events/1/2"):
            answer = await client.get(f"{mcp_url}/{path}", params={"token": token})
            assert answer.status_code == 404
    ours = [r.getMessage() for r in caplog.records if not r.name.startswith("httpx")]
    assert any("nowhere" in line for line in ours)
    assert not any(token in line for line in ours)
