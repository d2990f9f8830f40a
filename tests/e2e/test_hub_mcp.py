"""One MCP address of a JupyterHub: log-in by the hub's OAuth, and everybody's own server.

It needs the same programs as ``test_hub.py``. The client is the official one with its OAuth; the
person at its browser is a session of HTTP that logs in and decides.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import psutil
import pytest
import requests
from hub_process import ADMIN, PROXY, Hub, free_address, running_hub
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

from oh_jupyter.client import RuntimeClient
from oh_jupyter.events import IPythonRunCellAction
from oh_jupyter.mcp_sdk import major
from oh_jupyter.testing import descendants, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(PROXY is None, reason="configurable-http-proxy is not installed"),
]
pytest.importorskip("jupyterhub")

CALLBACK = "http://127.0.0.1:33418/callback"
CONFIG = f"""
c.JupyterHub.public_url = values["url"]
c.JupyterHub.services = [
    {{"name": "admin", "api_token": "{ADMIN}"}},
    *(
        {{
            "name": name,
            "url": url,
            "command": [values["program"], "hub", "--database", name + ".sqlite"],
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": scopes,
        }}
        for name, url, scopes in values["services"]
    ),
]
c.JupyterHub.load_roles = [
    {{"name": "administers", "services": ["admin"],
      "scopes": ["admin:users", "admin:servers", "tokens"]}},
    {{"name": "user", "scopes": [
        "self", "access:services!service=oh-jupyter", "access:services!service=starting",
    ]}},
]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    directory = tmp_path_factory.mktemp("hub")
    scopes = ["access:servers!user", "read:servers!user"]
    more = {
        "program": str(Path(sys.executable).with_name("oh-jupyter")),
        "services": [
            ("oh-jupyter", free_address(), scopes),
            ("starting", free_address(), [*scopes, "servers!user"]),
        ],
    }
    with running_hub(directory, f"values |= {more!r}\n{CONFIG}") as hub:
        hub.begin("ada")
        yield hub


def service(hub: Hub, name: str = "oh-jupyter") -> str:
    return f"{hub.url}/services/{name}"


class Browser:
    """A person's browser: follows redirects, logs in at the hub, decides on the question."""

    def __init__(self, user: str) -> None:
        self.session = requests.Session()
        self.user = user
        self.pages: list[str] = []

    def visit(self, url: str, decision: str = "allow") -> str:
        """Return the address of the client to which the browser is sent in the end."""
        answer = self._open("GET", url)
        while True:
            if answer.is_redirect:
                target = requests.compat.urljoin(answer.url, answer.headers["Location"])
                if not target.startswith(url.partition("/services/")[0]):
                    return target
                answer = self._open("GET", target)
            elif 'name="password"' in answer.text:
                token = re.search(r'name="_xsrf" value="([^"]+)"', answer.text)
                assert token
                form = {"username": self.user, "password": "x", "_xsrf": token[1]}
                answer = self._open("POST", answer.url, data=form)
            elif 'name="decision"' in answer.text:
                key = re.search(r'name="request" value="([^"]+)"', answer.text)
                assert key
                form = {"request": key[1], "decision": decision}
                answer = self._open("POST", answer.url.partition("?")[0], data=form)
            else:
                return answer.url

    def _open(self, method: str, url: str, **options: Any) -> requests.Response:
        answer = self.session.request(method, url, allow_redirects=False, timeout=300, **options)
        self.pages.append(answer.text)
        return answer


@dataclass
class Storage:
    """The client's storage."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@dataclass
class Person:
    """A person with an MCP client."""

    user: str
    storage: Storage = field(default_factory=Storage)

    @asynccontextmanager
    async def connected(self, url: str) -> Any:
        """Open a session with the official client, which authorizes when it has to."""
        result: dict[str, str] = {}

        async def redirect(address: str) -> None:
            target = await asyncio.to_thread(Browser(self.user).visit, address)
            assert target.startswith(CALLBACK), target
            result.update(parse_qsl(urlsplit(target).query))

        async def callback() -> Any:
            if major() == 1:
                return result["code"], result["state"]
            from mcp.client.auth import AuthorizationCodeResult

            return AuthorizationCodeResult(**result)

        metadata = OAuthClientMetadata(client_name="Robot", redirect_uris=[CALLBACK])
        auth = OAuthClientProvider(url, metadata, self.storage, redirect, callback)
        async with AsyncExitStack() as stack:
            streams = await _streams(stack, url, auth)
            session = await stack.enter_async_context(ClientSession(*streams[:2]))
            await session.initialize()
            yield session


async def _streams(stack: AsyncExitStack, url: str, auth: Any) -> Any:
    from mcp.client.streamable_http import streamable_http_client

    if major() == 1:
        import httpx as http
    else:
        import httpx2 as http
    client = await stack.enter_async_context(http.AsyncClient(auth=auth, timeout=300))
    return await stack.enter_async_context(streamable_http_client(url, http_client=client))


async def text_of(session: Any, tool: str, **arguments: Any) -> str:
    result = await session.call_tool(tool, arguments)
    return "\n".join(block.text for block in result.content)


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(work())  # type: ignore[arg-type]


def test_the_official_client_authorizes_and_works_on_its_persons_server(hub: Hub) -> None:
    """It knows the one address, and after the log-in it runs a cell on ada's kernel."""
    ada = Person("ada")

    async def scenario() -> None:
        async with ada.connected(f"{service(hub)}/mcp") as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert {"run_ipython", "run"} <= names
            assert "42" in await text_of(session, "run_ipython", code="answer = 6 * 7; answer")
            home = await text_of(session, "run", command="pwd")
            assert "/ada" in home
        async with ada.connected(f"{service(hub)}/mcp") as session:  # by the stored token
            assert "43" in await text_of(session, "run_ipython", code="answer + 1")

    run(scenario)
    assert ada.storage.tokens.refresh_token
    with RuntimeClient(hub.server("ada"), hub.token("ada")) as runtime:
        history = runtime.history()
    actors = [each.actor for each in history if isinstance(each, IPythonRunCellAction)]
    assert [(actor.user, actor.client) for actor in actors] == [("ada", "mcp")] * 2


def test_everybody_reaches_their_own_servers_only(hub: Hub) -> None:
    hub.begin("bob", "big")
    bob = Person("bob")

    async def scenario() -> None:
        async with bob.connected(f"{service(hub)}/mcp") as session:  # the only one that runs
            assert "/bob" in await text_of(session, "run", command="pwd")
        async with Person("bob").connected(f"{service(hub)}/mcp/big") as session:
            assert "/bob" in await text_of(session, "run", command="pwd")

    run(scenario)
    ada = Flow(hub, "ada")
    token = ada.token()["access_token"]
    answer = ada.initialize(token, "/mcp/big")
    assert answer.status_code == 503
    assert "Your server 'big' is not running" in answer.json()["error"]["message"]
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/user/ada/api/kernels", "/user/bob/api/kernels", "/hub/api/user"):
        answer = requests.get(hub.url + path, headers=headers, allow_redirects=False, timeout=300)
        assert answer.status_code in (302, 403), path
    for path in ("/mcp/..%2F..%2Fbob%2Fbig", "/mcp/bob%2Fbig", "/mcp/big/../../../../user/bob"):
        assert ada.initialize(token, path).status_code in (403, 404, 503), path


@dataclass
class Flow:
    """The client's requests one by one."""

    hub: Hub
    user: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def __post_init__(self) -> None:
        self.base = service(self.hub)
        registration = {"client_name": "Robot", "redirect_uris": [CALLBACK]}
        answer = requests.post(f"{self.base}/register", json=registration, timeout=300)
        assert answer.status_code == 201
        self.client = answer.json()["client_id"]

    def address(self, **params: str) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client,
            "redirect_uri": CALLBACK,
            "state": "the state",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": f"{self.base}/mcp",
        }
        return f"{self.base}/authorize?{urlencode(query | params)}"

    def authorize(self, decision: str = "allow", **params: str) -> dict[str, str]:
        target = Browser(self.user).visit(self.address(**params), decision)
        assert target.startswith(CALLBACK), target
        result = dict(parse_qsl(urlsplit(target).query))
        assert result["state"] == "the state"
        assert result["iss"] == self.base
        return result

    def exchange(self, **form: str) -> requests.Response:
        full = {
            "grant_type": "authorization_code",
            "client_id": self.client,
            "redirect_uri": CALLBACK,
            "code_verifier": self.verifier,
            **form,
        }
        return requests.post(f"{self.base}/token", data=full, timeout=300)

    def token(self, **params: str) -> dict[str, Any]:
        answer = self.exchange(code=self.authorize(**params)["code"])
        assert answer.headers["Cache-Control"] == "no-store"
        tokens: dict[str, Any] = answer.json()
        return tokens

    def refresh(self, token: str) -> requests.Response:
        return self.exchange(grant_type="refresh_token", refresh_token=token)

    def send(self, token: str, path: str, message: Any, **options: Any) -> requests.Response:
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            **options.pop("headers", {}),
        }
        return requests.post(
            self.base + path, json=message, headers=headers, timeout=300, **options
        )

    def initialize(self, token: str, path: str = "/mcp") -> requests.Response:
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        return self.send(token, path, message)


@pytest.fixture
def flow(hub: Hub) -> Flow:
    return Flow(hub, "ada")


def assert_rejected(answer: requests.Response, description: str) -> None:
    assert answer.status_code == 401
    challenge = answer.headers["WWW-Authenticate"]
    assert 'error="invalid_token"' in challenge
    assert description in challenge


def test_without_a_token_a_client_learns_where_to_authorize(flow: Flow) -> None:
    answer = requests.post(f"{flow.base}/mcp", json={}, timeout=300)
    assert answer.status_code == 401
    challenge = answer.headers["WWW-Authenticate"]
    assert "error" not in challenge
    address = re.search(r'resource_metadata="([^"]+)"', challenge)
    assert address
    metadata = requests.get(address[1], timeout=300).json()
    assert metadata["resource"] == f"{flow.base}/mcp"
    (issuer,) = metadata["authorization_servers"]
    configuration = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=300).json()
    assert configuration["issuer"] == issuer
    # The first address that clients try is the hub's: it must lead them to the next one.
    root = f"{flow.hub.url}/.well-known/oauth-authorization-server/services/oh-jupyter"
    assert requests.get(root, timeout=300).status_code == 404


def test_a_wrong_redirect_address_gets_nothing(flow: Flow) -> None:
    """The person sees why, and is not sent anywhere."""
    browser = Browser("ada")
    for uri in ("https://evil.example/", f"{CALLBACK}/x", ""):
        address = flow.address(redirect_uri=uri)
        assert browser.visit(address) == address
        assert "has not registered the address" in browser.pages[-1]
    other = flow.address(client_id="made-up")
    assert browser.visit(other) == other
    assert "not registered here" in browser.pages[-1]


def test_a_denial_and_an_invalid_request(flow: Flow) -> None:
    assert flow.authorize("deny")["error"] == "access_denied"
    assert flow.authorize(resource=f"{flow.hub.url}/other")["error"] == "invalid_target"
    assert flow.authorize(code_challenge_method="plain")["error"] == "invalid_request"
    assert flow.authorize(response_type="token")["error"] == "unsupported_response_type"


def test_the_question_is_for_one_browser_and_its_page(flow: Flow) -> None:
    browser, other = Browser("ada"), Browser("ada")
    browser.visit(flow.address())
    question = next(page for page in browser.pages if 'name="decision"' in page)
    assert "Robot" in question
    assert "as\n<strong>ada" in question
    assert CALLBACK in question
    key = re.search(r'name="request" value="([^"]+)"', question)
    assert key
    form = {"request": key[1], "decision": "allow"}
    answer = other.session.post(f"{flow.base}/consent", data=form, timeout=300)
    assert answer.status_code == 400
    headers = {"Sec-Fetch-Mode": "cors"}
    answer = browser.session.post(f"{flow.base}/consent", data=form, headers=headers, timeout=300)
    assert "Only the page itself" in answer.text


def test_a_code_is_for_its_client_and_works_once(flow: Flow) -> None:
    code = flow.authorize()["code"]
    other = {"client_name": "Other", "redirect_uris": [CALLBACK]}
    client = requests.post(f"{flow.base}/register", json=other, timeout=300).json()["client_id"]
    for form in ({"client_id": client}, {"code": "made-up"}):
        assert flow.exchange(**{"code": code, **form}).json()["error"] == "invalid_grant"
    answer = flow.exchange(code=code, code_verifier="w" * 43)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    code = flow.authorize()["code"]
    token = flow.exchange(code=code).json()["access_token"]
    assert flow.initialize(token).ok
    assert flow.exchange(code=code).json()["error"] == "invalid_grant"
    assert_rejected(flow.initialize(token), "revoked")
    answer = flow.exchange(code=code, client_id="made-up")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_tokens_are_refreshed_expire_and_are_revoked(flow: Flow) -> None:
    first = flow.token()
    second = flow.refresh(first["refresh_token"]).json()
    assert flow.initialize(second["access_token"]).ok
    form = {"client_id": flow.client, "token": second["refresh_token"]}
    assert requests.post(f"{flow.base}/revoke", data=form, timeout=300).ok
    for token in (first, second):
        assert_rejected(flow.initialize(token["access_token"]), "revoked")
    assert flow.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    third = flow.token()
    (directory,) = {Path(each.cwd()) for each in descendants_named("jupyterhub")}
    with closing(sqlite3.connect(directory / "oh-jupyter.sqlite")) as database, database:
        database.execute("UPDATE tokens SET expires = 0 WHERE kind = 'access'")
    assert_rejected(flow.initialize(third["access_token"]), "expired")
    assert "access_token" in flow.refresh(third["refresh_token"]).json()


def test_a_token_is_for_its_address_and_those_below(flow: Flow) -> None:
    big = flow.token(resource=f"{flow.base}/mcp/big")["access_token"]
    assert_rejected(flow.initialize(big), "for")
    assert flow.initialize(big, "/mcp/big").status_code == 503
    assert_rejected(flow.initialize(big, "/mcp/bigger"), "for")


def test_a_revocation_at_the_hub_applies_at_once(flow: Flow) -> None:
    token = flow.token()["access_token"]
    assert flow.initialize(token).ok
    tokens = flow.hub.api("GET", "users/ada/tokens").json()["api_tokens"]
    for each in tokens:
        if "oh-jupyter" in each["oauth_client"]:
            with suppress(requests.HTTPError):  # the hub has ended it with an earlier one
                flow.hub.api("DELETE", f"users/ada/tokens/{each['id']}")
    assert_rejected(flow.initialize(token), "The hub has ended")


def test_responses_stream_and_a_client_that_leaves_ends_its_work(flow: Flow) -> None:
    token = flow.token()["access_token"]
    session = {"Mcp-Session-Id": flow.initialize(token).headers["Mcp-Session-Id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert flow.send(token, "/mcp", ready, headers=session).status_code == 202
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", **session}
    with requests.get(f"{flow.base}/mcp", headers=headers, stream=True, timeout=300) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
    params = {
        "name": "run",
        "arguments": {"command": "sleep 4321"},
        "_meta": {"progressToken": 1},
    }
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    with flow.send(token, "/mcp", call, headers=session, stream=True) as answer:
        wait_until(lambda: has_process("4321"), timeout_seconds=300)
        assert answer.headers["Content-Type"].startswith("text/event-stream")
    wait_until(lambda: not has_process("4321"), timeout_seconds=300)


def has_process(word: str) -> bool:
    return bool(descendants(lambda process: word in process.cmdline()))


def descendants_named(word: str) -> list[psutil.Process]:
    return [
        each
        for each in psutil.Process().children()
        if any(word in argument for argument in each.cmdline())
    ]


def test_connect_writes_the_address_without_a_token(flow: Flow, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("oh-jupyter")
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(tmp_path)}
    for url, address in (("/", "/mcp"), ("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/big", "/mcp/big")):
        command = [program, "connect", "claude", "--url", flow.base + url]
        output = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=300
        ).stdout
        assert "needs no token" in output
        entry = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]["oh-jupyter"]
        assert entry == {"type": "http", "url": flow.base + address}


def test_a_stopped_server_is_explained_or_started(flow: Flow) -> None:
    token = flow.token()["access_token"]
    flow.hub.api("DELETE", "users/ada/server")
    wait_until(
        lambda: "" not in flow.hub.api("GET", "users/ada").json()["servers"], timeout_seconds=300
    )
    answer = flow.initialize(token)
    assert answer.status_code == 503
    message = answer.json()["error"]["message"]
    assert "Your server is not running (running: none)" in message
    assert f"{flow.hub.url}/hub/home" in message

    async def scenario() -> None:
        async with Person("ada").connected(f"{service(flow.hub, 'starting')}/mcp") as session:
            assert "/ada" in await text_of(session, "run", command="pwd")

    run(scenario)
