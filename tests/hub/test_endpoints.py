"""The program ``oh-jupyter hub`` without a hub: what it says by itself, and ``connect`` to it.

``tests/e2e/test_hub_mcp.py`` has the whole flow with a real hub.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

PROGRAM = Path(sys.executable).with_name("oh-jupyter")
REDIRECT = "http://localhost:1/cb"
CHALLENGE = "c" * 43


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service whose hub cannot be reached."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    variables = {
        "JUPYTERHUB_SERVICE_PREFIX": "/services/oh-jupyter/",
        "JUPYTERHUB_SERVICE_URL": origin,
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_API_URL": "http://127.0.0.1:9/hub/api",
        "JUPYTERHUB_CLIENT_ID": "service-oh-jupyter",
        "JUPYTERHUB_API_TOKEN": "secret",
    }
    process = subprocess.Popen(
        [PROGRAM, "hub", "--public-url", origin],
        cwd=tmp_path_factory.mktemp("hub"),
        env=os.environ | variables,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("MCP for the users of"), line + process.stderr.read()
    yield f"{origin}/services/oh-jupyter"
    process.terminate()
    output = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "Traceback" not in output
    assert "the-code" not in output, "a code is logged"


@pytest.fixture(scope="module")
def client(base: str) -> str:
    body = {"redirect_uris": [REDIRECT], "client_name": "Robot"}
    answer = requests.post(f"{base}/register", json=body, timeout=60)
    assert answer.status_code == 201
    return str(answer.json()["client_id"])


def test_discovery_leads_from_the_address_to_the_endpoints(base: str) -> None:
    answer = requests.post(f"{base}/mcp", timeout=60)
    assert answer.status_code == 401
    assert f"{base}/.well-known/oauth-protected-resource/mcp" in answer.headers["WWW-Authenticate"]
    for name in ("openid-configuration", "oauth-authorization-server"):
        answer = requests.get(f"{base}/.well-known/{name}", timeout=60)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        metadata = answer.json()
        assert metadata["issuer"] == base
        assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert requests.get(metadata["jwks_uri"], timeout=60).json() == {"keys": []}
    named = requests.get(f"{base}/.well-known/oauth-protected-resource/mcp/a%20b", timeout=60)
    assert named.json()["resource"] == f"{base}/mcp/a%20b"
    assert requests.options(f"{base}/token", timeout=60).status_code == 204


def test_the_person_is_sent_to_the_hub_with_a_cookie(base: str, client: str) -> None:
    query = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": "http://localhost:22222/cb",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    answer = requests.get(f"{base}/authorize", query, allow_redirects=False, timeout=60)
    assert answer.status_code == 302
    target = answer.headers["Location"]
    assert target.startswith(base.replace("services/oh-jupyter", "hub/api/oauth2/authorize?"))
    assert "client_id=service-oh-jupyter" in target
    cookie = answer.headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Lax", "Path=/services/oh-jupyter/"):
        assert part in cookie
    assert answer.headers["X-Frame-Options"] == "DENY"
    twice = requests.get(f"{base}/authorize", [*query.items(), ("client_id", client)], timeout=60)
    assert twice.status_code == 400
    assert "client_id occurs more than once" in twice.text


def test_an_error_leads_only_to_a_program_of_the_persons_own(base: str) -> None:
    for uri, status in ((REDIRECT, 303), ("https://evil.example/", 400), ("app:/cb", 400)):
        body = {"redirect_uris": [uri]}
        client = requests.post(f"{base}/register", json=body, timeout=60).json()["client_id"]
        query = {"response_type": "token", "client_id": client, "redirect_uri": uri, "state": "s"}
        answer = requests.get(f"{base}/authorize", query, allow_redirects=False, timeout=60)
        assert answer.status_code == status
        if status == 303:
            parts = urlsplit(answer.headers["Location"])
            assert (
                dict(parse_qsl(parts.query)).items()
                >= {
                    "error": "unsupported_response_type",
                    "state": "s",
                    "iss": base,
                }.items()
            )


def test_a_document_of_this_machine_is_not_fetched(base: str) -> None:
    query = {"client_id": "https://localhost/client.json", "redirect_uri": REDIRECT}
    answer = requests.get(f"{base}/authorize", query, timeout=60)
    assert answer.status_code == 400
    assert "is not on a public address" in answer.text


def test_a_callback_of_another_browser_is_rejected(base: str) -> None:
    answer = requests.get(f"{base}/oauth_callback?code=the-code&state=made-up", timeout=60)
    assert answer.status_code == 400
    assert "another browser" in answer.text
    assert "script" not in answer.text


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"client_id": ""}, 401, "invalid_client"),
        ({}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, 400, "invalid_grant"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, 400, "invalid_grant"),
        ({"grant_type": "refresh_token", "resource": "https://x.example"}, 400, "invalid_target"),
    ],
)
def test_errors_of_the_token_endpoint(
    base: str, client: str, form: dict[str, str], status: int, code: str
) -> None:
    answer = requests.post(f"{base}/token", {"client_id": client, **form}, timeout=60)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.headers["Cache-Control"] == "no-store"


def test_malformed_requests_are_explained(base: str, client: str) -> None:
    answer = requests.post(f"{base}/register", "{", timeout=60)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    answer = requests.post(f"{base}/revoke", {"client_id": client}, timeout=60)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    answer = requests.post(f"{base}/revoke", {"client_id": client, "token": "x"}, timeout=60)
    assert answer.status_code == 200
    answer = requests.get(f"{base}/mcp", headers={"Authorization": "Bearer \xff"}, timeout=60)
    assert answer.status_code == 401
    assert requests.get(f"{base}/", timeout=60).text.count(f"{base}/mcp") == 2


def connect(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(place), "CLAUDE_CONFIG_DIR": str(place)}
    return subprocess.run(
        [PROGRAM, "connect", "claude", *arguments],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
    )


def entry(place: Path) -> Any:
    return json.loads((place / ".claude.json").read_text())["mcpServers"]["oh-jupyter"]


@pytest.mark.parametrize(
    ("below", "address"), [("/", "/mcp"), ("/mcp", "/mcp"), ("/mcp/big", "/mcp/big")]
)
def test_connect_writes_the_address_alone(
    base: str, tmp_path: Path, below: str, address: str
) -> None:
    done = connect(tmp_path, "--url", base + below)
    assert done.returncode == 0, done.stderr
    assert "needs no token" in done.stdout
    assert entry(tmp_path) == {"type": "http", "url": base + address}


@pytest.mark.thorough
def test_connect_refuses_options_that_do_not_fit_the_address(base: str, tmp_path: Path) -> None:
    for arguments, message in (
        (["--notebook", "a.ipynb"], "omit --notebook"),
        (["--scope", "read"], "--scope makes a token for the servers of this machine"),
    ):
        done = connect(tmp_path, "--url", base, *arguments)
        assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    other = base.replace("127.0.0.1", "localhost")
    done = connect(tmp_path, "--url", other)
    assert f"says that its address is {base}/mcp; use that one" in done.stderr


def test_missing_variables_of_a_hub_are_reported_with_a_remedy(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "hub"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "add this command to c.JupyterHub.services" in done.stderr
