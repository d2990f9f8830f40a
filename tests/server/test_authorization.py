"""Permissions at every address and method, for every kind of caller."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from oh_jupyter.server.handlers import HANDLERS
from oh_jupyter.server.handlers.base import OhHandler

Statuses = dict[tuple[str, str], int]

METHODS = ("get", "put", "post", "delete", "patch")
SESSION_KEY = "the-session-key"

ACTIONS = "oh_jupyter:actions"
EVENTS = "oh_jupyter:events"
STORE = "oh_jupyter:store"
CONFIRMATIONS = "oh_jupyter:confirmations"
KERNELS = ("execute", "kernels")

OF_THE_SERVER: dict[tuple[str, str], tuple[str, str]] = {
    ("get", "openapi.yaml"): ("read", ACTIONS),
    ("get", "notebooks"): ("read", "sessions"),
    ("get", "requests/x"): ("execute", ACTIONS),
    ("get", "viewer/x/view"): ("execute", ACTIONS),
    ("put", "unsaved"): ("write", "contents"),
    ("post", "unsaved"): ("execute", ACTIONS),
    ("delete", "requests/x"): ("execute", ACTIONS),
    **{(method, "nowhere"): ("read", ACTIONS) for method in METHODS},
    **{(method, "e2b/nowhere"): ("read", ACTIONS) for method in METHODS},
}
"""What the authorizer is asked for each request."""

OF_A_KERNEL: dict[tuple[str, str], tuple[str, str]] = {
    ("get", "alive"): ("read", ACTIONS),
    ("get", "server_info"): ("read", ACTIONS),
    ("post", "execute_action"): ("execute", ACTIONS),
    ("post", "list_files"): ("read", ACTIONS),
    ("post", "upload_file"): ("execute", ACTIONS),
    ("get", "download_files"): ("execute", ACTIONS),
    ("get", "view"): ("execute", ACTIONS),
    ("get", "events"): ("read", EVENTS),
    ("get", "events/0"): ("read", EVENTS),
    ("get", "confirmations"): ("read", EVENTS),
    ("post", "confirmations/0"): ("execute", CONFIRMATIONS),
    ("get", "decisions"): ("read", EVENTS),
    ("get", "checkpoints"): ("read", EVENTS),
    ("post", "checkpoints"): ("execute", ACTIONS),
    ("post", "rewind"): ("execute", ACTIONS),
    ("get", "skills"): ("read", ACTIONS),
    ("get", "store/x"): ("read", STORE),
    ("put", "store/x"): ("write", STORE),
    ("delete", "store/x"): ("write", STORE),
    ("patch", "store/x?to=y"): ("write", STORE),
    ("get", "browser/screenshot"): ("read", EVENTS),
    ("get", "browser/set_of_marks"): ("read", EVENTS),
    ("get", "browser/marks"): ("read", EVENTS),
    ("get", "e2b/health"): ("read", ACTIONS),
    ("post", "e2b/v2/sandboxes"): ("execute", ACTIONS),
    ("delete", "e2b/sandboxes/x"): ("execute", ACTIONS),
    ("get", "e2b/contexts"): ("read", ACTIONS),
    ("post", "e2b/contexts"): ("execute", ACTIONS),
    ("delete", "e2b/contexts/x"): ("execute", ACTIONS),
    ("post", "e2b/contexts/x/restart"): ("execute", ACTIONS),
    ("post", "e2b/execute"): ("execute", ACTIONS),
    ("get", "mcp"): ("execute", ACTIONS),
    ("post", "mcp"): ("execute", ACTIONS),
    ("delete", "mcp"): ("execute", ACTIONS),
    ("get", "mcp/sse"): ("execute", ACTIONS),
    ("post", "mcp/messages/?session_id=x"): ("execute", ACTIONS),
    ("post", "update_mcp_server"): ("execute", ACTIONS),
    ("get", "vscode"): ("execute", ACTIONS),
    ("get", "vscode/connection_token"): ("execute", ACTIONS),
}
"""The same; on an open kernel, it is asked for ``KERNELS`` besides."""

UNKNOWN = "no-such-kernel"

FORM = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n',
    "multipart/form-data; boundary=b",
)

BODIES: dict[str, Any] = {
    "execute_action": {"action": {"action": "run", "args": {"command": "touch executed"}}},
    "list_files": {},
    "confirmations/0": {"approve": False},
    "checkpoints": {"label": "x"},
    "rewind": {"preview": True},
    "update_mcp_server": [],
    "unsaved": {"client": "window", "paths": []},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
}


def requests() -> list[tuple[str, str]]:
    below = [(method, f"kernels/{UNKNOWN}/{path}") for method, path in OF_A_KERNEL]
    return [*OF_THE_SERVER, *OF_A_KERNEL, *below]


def expected(method: str, path: str) -> list[tuple[str, str]]:
    """Return the permissions that the authorizer checks."""
    below = path.removeprefix(f"kernels/{UNKNOWN}/")
    asked = [{**OF_THE_SERVER, **OF_A_KERNEL}[method, below]]
    return asked if below == path else [*asked, KERNELS]


def own_methods(handler: type[OhHandler]) -> dict[str, Any]:
    methods = {name: getattr(handler, name) for name in METHODS}
    return {
        name: methods[name] for name in METHODS if methods[name] is not getattr(OhHandler, name)
    }


def test_the_table_has_every_address_and_method() -> None:
    listed: dict[str, set[str]] = {}
    for method, path in requests():
        address = f"/oh_jupyter/{path.partition('?')[0]}"
        pattern = next(p for p, _ in HANDLERS if re.fullmatch(p, address))
        listed.setdefault(pattern, set()).add(method)
    assert listed == {pattern: set(own_methods(handler)) for pattern, handler in HANDLERS}


def test_every_endpoint_has_the_permission_of_its_route() -> None:
    listed = {}
    for method, path in [*OF_THE_SERVER, *OF_A_KERNEL]:
        address = f"/oh_jupyter/{path.partition('?')[0]}"
        handler = next(handler for pattern, handler in HANDLERS if re.fullmatch(pattern, address))
        listed[method, path] = handler.routes[method].permission
    assert listed == OF_THE_SERVER | OF_A_KERNEL
    for _, handler in HANDLERS:
        # No method but those that the table makes, which check the permission of their route.
        assert own_methods(handler).keys() == handler.routes.keys()
        assert all(route.permission is not None for route in handler.routes.values())


@pytest.fixture
def statuses(mcp_url: str, jp_root_dir: Path) -> Callable[..., Awaitable[Statuses]]:
    """Send every request of the table as somebody: status by request."""

    async def statuses(headers: dict[str, str], query: str = "") -> Statuses:
        result = {}
        async with httpx.AsyncClient(timeout=60) as client:
            for method, path in requests():
                url = f"{mcp_url}/{path}{'&' if '?' in path else '?'}{query}"
                sent: dict[str, Any] = {"headers": headers}
                name = path.removeprefix(f"kernels/{UNKNOWN}/")
                if name == "upload_file":
                    sent |= {"content": FORM[0], "headers": {**headers, "Content-Type": FORM[1]}}
                    url += f"&destination={jp_root_dir}/uploaded"
                elif name in ("download_files", "view"):
                    url += f"&path={jp_root_dir}/uploaded"
                elif method != "get":
                    sent |= {"json": BODIES.get(name, "x")}
                # Some answers have no end.
                async with client.stream(method.upper(), url, **sent) as answer:
                    result[method, path] = answer.status_code
        return result

    return statuses


@pytest.fixture
def authorizer(jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch) -> Policy:
    policy = Policy()
    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", policy.is_authorized)
    return policy


class Policy:
    """An authorizer that refuses listed permissions and records requested ones."""

    def __init__(self) -> None:
        self.refused: set[tuple[str, str]] = set()
        self.asked: list[tuple[str, str]] = []

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        self.asked.append((action, resource))
        return (action, resource) not in self.refused


STRANGERS: dict[str, dict[str, str]] = {
    "nobody": {},
    "a wrong token": {"Authorization": "token wrong"},
    "an empty token": {"Authorization": "token"},
    "a wrong session key": {"X-Session-API-Key": "guess"},
    "an empty session key": {"X-Session-API-Key": ""},
    "the session key as a token": {"Authorization": f"token {SESSION_KEY}"},
    "a wrong bearer": {"Authorization": "Bearer guess"},
}


@pytest.mark.thorough
async def test_strangers_are_turned_away_everywhere(
    statuses: Any, authorizer: Policy, monkeypatch: pytest.MonkeyPatch, jp_serverapp: Any
) -> None:
    monkeypatch.setenv("SESSION_API_KEY", SESSION_KEY)
    for who, headers in STRANGERS.items():
        assert set((await statuses(headers)).values()) == {403}, who
    monkeypatch.delenv("SESSION_API_KEY")
    for headers in ({"X-Session-API-Key": SESSION_KEY}, {"X-Session-API-Key": ""}):
        assert set((await statuses(headers)).values()) == {403}
    assert set((await statuses({}, "token=wrong")).values()) == {403}
    assert not authorizer.asked
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


@pytest.mark.thorough
async def test_the_token_opens_everything(
    statuses: Any, authorizer: Policy, jp_auth_header: dict[str, str], jp_root_dir: Path
) -> None:
    results = await statuses(jp_auth_header)
    assert 403 not in results.values()
    below = {status for (_, path), status in results.items() if path.startswith("kernels/")}
    assert below == {404}
    succeed = ("alive", "execute_action", "upload_file", "download_files", "mcp/sse", "vscode")
    assert {results[m, path] for m, path in results if path in succeed} == {200}
    assert (jp_root_dir / "executed").exists()
    assert (jp_root_dir / "uploaded").exists()
    token = jp_auth_header["Authorization"].removeprefix("token ")
    assert 403 not in (await statuses({}, f"token={token}")).values()


@pytest.mark.thorough
async def test_the_session_key_opens_everything_but_confirmations(
    statuses: Any, authorizer: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_API_KEY", SESSION_KEY)
    results = await statuses({"X-Session-API-Key": SESSION_KEY})
    refused = {request for request, status in results.items() if status == 403}
    own = ("post", "confirmations/0")
    assert refused == {own, ("post", f"kernels/{UNKNOWN}/confirmations/0")}
    # MCP clients know bearer tokens only.
    results = await statuses({"Authorization": f"Bearer {SESSION_KEY}"})
    for (method, path), status in results.items():
        is_mcp = re.search(r"(^|/)mcp(/|$)", path.partition("?")[0]) is not None
        assert (status != 403) == is_mcp, (method, path, status)


@pytest.mark.thorough
async def test_the_authorizer_is_asked_for_the_right_things(
    statuses: Any, authorizer: Policy, jp_auth_header: dict[str, str], monkeypatch: Any
) -> None:
    every = {pair for request in requests() for pair in expected(*request)}
    for refused in sorted(every):
        authorizer.refused = {refused}
        for request, status in (await statuses(jp_auth_header)).items():
            assert (status == 403) == (refused in expected(*request)), (refused, request, status)
    assert set(authorizer.asked) == every


async def test_a_user_without_permissions_gets_nothing(
    statuses: Any, authorizer: Policy, jp_auth_header: dict[str, str], jp_serverapp: Any
) -> None:
    authorizer.refused = {pair for request in requests() for pair in expected(*request)}
    assert set((await statuses(jp_auth_header)).values()) == {403}
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


@pytest.mark.thorough
async def test_another_site_cannot_use_a_persons_login(
    mcp_url: str, jp_auth_header: dict[str, str], jp_serverapp: Any
) -> None:
    token = jp_auth_header["Authorization"].removeprefix("token ")
    async with httpx.AsyncClient(timeout=60) as client:
        await client.get(f"{mcp_url.removesuffix('/oh_jupyter')}/login")
        await client.get(f"{mcp_url}/alive?token={token}")
        assert (await client.get(f"{mcp_url}/alive")).status_code == 200  # by its cookie
        for method, path in requests():
            if method != "get":
                answer = await client.request(method, f"{mcp_url}/{path}", content=b"{}")
                assert answer.status_code == 403, (method, path)
        assert not list(jp_serverapp.kernel_manager.list_kernel_ids())
        own_page = {"X-XSRFToken": client.cookies["_xsrf"]}
        answer = await client.post(f"{mcp_url}/list_files", json={}, headers=own_page)
        assert answer.status_code == 200
