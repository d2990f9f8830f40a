"""Requests with agents' tokens at each address and with each MCP tool, judged like Actions."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp_client import text_of
from tornado.httpclient import HTTPClientError

from oh_jupyter.events.actor import SCOPES
from oh_jupyter.server.handlers import KERNEL_TABLES, SERVER_TABLES
from oh_jupyter.server.handlers.workspace import routes as workspace_routes
from oh_jupyter.server.state import state_of
from oh_jupyter.server.tokens import ScopedTokens
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.shared import open_ledger

pytestmark = pytest.mark.server_config(
    OhJupyter={
        "confirmation": "risky",
        "sandbox": "required",
        "confirmation_timeout": 50,
        "confirmation_over_rest": True,
        "plugins": [],
    }
)

ANY = "any"
"""Scope of an address that admits every token, since the Action or the tool decides."""

PERSONS = "nobody"
"""Scope of an address that admits no token."""

JUDGED = "a person is asked like for an Action"
ACTION = "it is an Action"
OWN = "it uses nothing but the runtime's own state"


class Row(NamedTuple):
    scope: str
    effect: str


ADDRESSES: dict[str, Row] = {
    "POST /execute_action": Row(ANY, ACTION),
    "POST /list_files": Row("execute", JUDGED),
    "GET /requests/(?P<key>[^/]+)": Row(ANY, OWN),
    "DELETE /requests/(?P<key>[^/]+)": Row(ANY, OWN),
    "POST /unsaved": Row("execute", OWN),
    "PUT /unsaved": Row("edit", OWN),
    "GET /e2b/health": Row("read", OWN),
    "POST /e2b/v2/sandboxes": Row("execute", OWN),
    r"DELETE /e2b/sandboxes/(?P<sandbox_id>[\w-]{1,100})": Row("execute", OWN),
    "GET /e2b/contexts": Row("read", OWN),
    "POST /e2b/contexts": Row("execute", JUDGED),
    r"DELETE /e2b/contexts/(?P<context_id>[\w-]{1,100})": Row("execute", OWN),
    r"POST /e2b/contexts/(?P<context_id>[\w-]{1,100})/restart": Row("execute", OWN),
    "POST /e2b/execute": Row("execute", ACTION),
    "GET /events": Row("read", OWN),
    r"GET /events/(?P<event_id>\d{1,15})": Row("read", OWN),
    "POST /upload_file": Row("execute", JUDGED),
    "GET /download_files": Row("execute", JUDGED),
    r"GET /viewer/(?P<view_key>[\w-]+)/view": Row("execute", JUDGED),
    "GET /view": Row("execute", JUDGED),
    "GET /store/(?P<path>.*)": Row("read", JUDGED),
    "PUT /store/(?P<path>.*)": Row("edit", JUDGED),
    "DELETE /store/(?P<path>.*)": Row("edit", JUDGED),
    "PATCH /store/(?P<path>.*)": Row("edit", JUDGED),
    "GET /alive": Row("read", OWN),
    "GET /notebooks": Row("read", OWN),
    "GET /server_info": Row("read", OWN),
    r"GET /openapi\.yaml": Row("read", OWN),
    "GET /mcp": Row(ANY, OWN),
    "POST /mcp": Row(ANY, ACTION),
    "DELETE /mcp": Row(ANY, OWN),
    "GET /mcp/sse": Row(ANY, OWN),
    "POST /mcp/messages/": Row(ANY, ACTION),
    "POST /update_mcp_server": Row("execute", JUDGED),
    "GET /skills": Row("read", OWN),
    "GET /browser/marks": Row("read", OWN),
    r"POST /confirmations/(?P<event_id>\d{1,15})": Row(PERSONS, OWN),
    "GET /decisions": Row("read", OWN),
    "GET /checkpoints": Row("read", OWN),
    "POST /checkpoints": Row("execute", OWN),
    "POST /rewind": Row("execute", JUDGED),
    "GET /browser/(?P<kind>screenshot|set_of_marks)": Row("read", OWN),
    "GET /confirmations": Row("read", OWN),
    "GET /vscode": Row("execute", JUDGED),
    "GET /vscode/connection_token": Row("execute", JUDGED),
    "GET /(?:health|ready)": Row(ANY, OWN),
    "POST /api/bash/start_bash_command": Row("execute", ACTION),
    "POST /api/bash/execute_bash_command": Row("execute", ACTION),
    r"POST /api/bash/bash_commands/(?P<key>\w+)/stop": Row("execute", OWN),
    r"GET /api/bash/bash_events(?:/(?P<key>\w+))?": Row("read", OWN),
    r"DELETE /api/bash/bash_events(?:/(?P<key>\w+))?": Row("execute", OWN),
    "POST /api/file/upload": Row("execute", JUDGED),
    "GET /api/file/download": Row("execute", JUDGED),
    "GET /api/git/(?P<kind>changes|diff)": Row("execute", ACTION),
}
"""Every address with the scope that a token needs, and how its effects are judged."""

EXAMPLES = {
    "(?P<key>[^/]+)": "x",
    r"(?P<sandbox_id>[\w-]{1,100})": "x",
    r"(?P<context_id>[\w-]{1,100})": "x",
    r"(?P<event_id>\d{1,15})": "1",
    r"(?P<view_key>[\w-]+)": "x",
    "(?P<path>.*)": "x",
    "(?P<kind>screenshot|set_of_marks)": "screenshot",
    "(?P<kind>changes|diff)": "changes",
    r"(?:/(?P<key>\w+))?": "/x",
    r"(?P<key>\w+)": "x",
    "(?:health|ready)": "health",
    r"\.": ".",
}


def test_the_table_has_every_address() -> None:
    tables = (*SERVER_TABLES, *KERNEL_TABLES, workspace_routes)
    assert {route.address for table in tables for route in table.routes} == ADDRESSES.keys()


@pytest.fixture
def token(jp_serverapp: Any, tmp_path: Path) -> Callable[..., dict[str, str]]:
    tokens = ScopedTokens(Ledger(tmp_path / "ledger.db"))
    state_of(jp_serverapp.web_app.settings).tokens = ScopedTokens(open_ledger(tmp_path))

    def token(*scopes: str, **options: Any) -> dict[str, str]:
        return {"Authorization": f"token {tokens.create(scopes, **options)[1]}"}

    return token


async def test_each_address_needs_its_scope(jp_fetch: Any, token: Any) -> None:
    for address, row in ADDRESSES.items():
        method, _, path = address.partition(" ")
        for pattern, example in EXAMPLES.items():
            path = path.replace(pattern, example)
        others = [scope for scope in SCOPES if scope != row.scope] if row.scope != ANY else []
        for scope in others:
            with pytest.raises(HTTPClientError) as refused:
                await jp_fetch(
                    "oh_jupyter",
                    *path.strip("/").split("/"),
                    method=method,
                    body=None if method in ("GET", "DELETE") else b"[]",
                    params={"path": "/etc/hostname"},
                    headers={**token(scope), "Content-Type": "multipart/form-data; boundary=b"},
                )
            assert refused.value.code == 403, (address, scope)


def form(filename: str, data: bytes) -> tuple[bytes, dict[str, str]]:
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    return head.encode() + data + b"\r\n--b--\r\n", kind


def archive(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as opened:
        for name, data in members.items():
            opened.writestr(name.replace("__", "/"), data)
    return sink.getvalue()


Send = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def send(jp_fetch: Any) -> Send:
    """Send a request; return its status and body."""

    async def send(
        method: str, path: str, body: Any = None, headers: Any = None, /, **params: str
    ) -> tuple[int, Any]:
        if isinstance(body, tuple):
            body, kind = body
            headers = {**(headers or {}), **kind}
        elif body is not None:
            body = json.dumps(body).encode()
        try:
            answer = await jp_fetch(
                "oh_jupyter",
                *path.split("/"),
                method=method,
                body=body,
                headers=headers,
                params=params,
                request_timeout=60,
            )
        except HTTPClientError as error:
            return error.code, getattr(error.response, "body", b"")
        return answer.code, answer.body

    return send


@pytest.fixture
def decided(send: Send) -> Callable[..., Awaitable[Any]]:
    """Await a request that has to wait; decide on it, and return its result and the question."""

    async def decided(
        request: Awaitable[Any], *, approve: bool, kernel: str = ""
    ) -> tuple[Any, dict[str, Any]]:
        confirmations = f"kernels/{kernel}/confirmations" if kernel else "confirmations"
        task = asyncio.ensure_future(request)
        question = None
        async with asyncio.timeout(40):
            while question is None:
                if task.done():
                    raise AssertionError(f"nobody was asked: {task.result()}")
                waiting = json.loads((await send("GET", confirmations))[1] or b"[]")
                question = waiting[0] if waiting else None
                await asyncio.sleep(0.02)
        decision = {"approve": approve}
        await send("POST", f"{confirmations}/{question['id']}", decision)
        return await task, question

    return decided


@pytest.fixture
def secret() -> Path:
    key = Path.home() / ".ssh" / "id_rsa"
    key.parent.mkdir(exist_ok=True)
    key.write_text("PRIVATE")
    return key


@pytest.fixture
def workspace(send: Send, jp_root_dir: Path, jp_asyncio_loop: Any) -> Path:
    """The workspace of the default kernel, which has started."""
    status, _ = jp_asyncio_loop.run_until_complete(send("POST", "list_files", {}))
    assert status == 200
    return jp_root_dir


class Case(NamedTuple):
    """A request of an agent, the reason of its question, and whether it was carried out."""

    method: str
    path: str
    reason: str
    body: Any = None
    params: dict[str, str] = {}  # noqa: RUF012
    is_done: Callable[[], bool] = lambda: False


def cases(home: Path, workspace: Path) -> list[Case]:
    ssh, hooks = home / ".ssh", workspace / ".git" / "hooks"
    key = str(ssh / "id_rsa")
    program = {"name": "x", "command": "touch", "args": [str(workspace / "started")], "env": {}}
    return [
        Case("GET", "download_files", key, params={"path": key}),
        Case("GET", "download_files", str(ssh), params={"path": str(home)}),
        Case("GET", "view", key, params={"path": str(workspace / "link")}),
        Case("GET", "api/file/download", key, params={"path": key}),
        Case("POST", "list_files", str(ssh), {"path": str(ssh)}),
        Case(
            "POST",
            "upload_file",
            str(ssh / "config"),
            form("config", b"x"),
            {"destination": str(ssh)},
            lambda: (ssh / "config").exists(),
        ),
        Case(
            "POST",
            "upload_file",
            str(hooks / "pre-commit"),
            form("all.zip", archive(a=b"1", **{".git__hooks__pre-commit": b"x"})),
            {"destination": str(workspace), "recursive": "true"},
            lambda: hooks.exists() or (workspace / "a").exists(),
        ),
        Case(
            "POST",
            "upload_file",
            str(ssh / "rc"),
            form("rc", b"x"),
            {"destination": str(workspace / "folder")},
            lambda: (ssh / "rc").exists(),
        ),
        Case(
            "POST",
            "api/file/upload",
            str(hooks / "x"),
            form("x", b"x"),
            {"path": str(hooks / "x")},
            hooks.exists,
        ),
        Case(
            "POST",
            "update_mcp_server",
            f"touch {workspace / 'started'}",
            [program],
            is_done=(workspace / "started").exists,
        ),
        Case("POST", "e2b/contexts", str(home), {"cwd": str(home)}),
        Case("DELETE", "store/kept.txt", "deletes kept.txt from the store"),
    ]


async def test_agents_wait_where_their_actions_would(
    send: Send, decided: Any, token: Any, secret: Path, workspace: Path
) -> None:
    home = Path.home()
    (workspace / "link").symlink_to(secret)
    (workspace / "folder").symlink_to(secret.parent)
    await send("PUT", "store/kept.txt", "kept")
    headers = token("read", "edit", "execute")
    for case in cases(home, workspace):
        request = send(case.method, case.path, case.body, headers, **case.params)
        (status, body), question = await decided(request, approve=False)
        assert case.reason in question["reason"], case
        assert (status, b"rejected by the user" in body) == (403, True), (case, body)
        assert not case.is_done(), case
    assert (await send("GET", "store/kept.txt"))[1] == b'"kept"'


@pytest.mark.thorough
async def test_an_approved_upload_is_put_in_place(
    send: Send, decided: Any, token: Any, secret: Path, workspace: Path
) -> None:
    headers = token("execute")
    where = {"destination": str(secret.parent), "recursive": "true"}
    request = send(
        "POST", "upload_file", form("x.zip", archive(d__e=b"1", f=b"2")), headers, **where
    )
    (status, _), question = await decided(request, approve=True)
    assert status == 200
    assert str(secret.parent / "d" / "e") in question["reason"]
    assert (secret.parent / "d" / "e").read_bytes() == b"1"
    status, body = await send(
        "POST", "upload_file", form("plain", b"12"), headers, destination=str(workspace / "new")
    )
    assert status == 200, body
    assert (workspace / "new" / "plain").read_bytes() == b"12"
    request = send("GET", "download_files", None, headers, path=str(secret.parent))
    (status, body), _ = await decided(request, approve=True)
    assert zipfile.ZipFile(io.BytesIO(body)).read("id_rsa") == b"PRIVATE"


@pytest.mark.thorough
async def test_an_archive_leaves_out_targets_of_links(
    send: Send, token: Any, secret: Path, workspace: Path
) -> None:
    folder = workspace / "data"
    folder.mkdir()
    (folder / "own").write_text("mine")
    (folder / "key").symlink_to(secret)
    status, body = await send("GET", "download_files", None, token("execute"), path=str(folder))
    assert status == 200
    sent = zipfile.ZipFile(io.BytesIO(body))
    assert sent.namelist() == ["own"]
    assert b"key: a person would have to approve" in sent.comment


@pytest.mark.thorough
async def test_a_persons_own_requests_are_not_asked_about(
    send: Send, secret: Path, workspace: Path
) -> None:
    assert (await send("GET", "view", path=str(secret)))[1] == b"PRIVATE"
    where = {"destination": str(secret.parent)}
    assert (await send("POST", "upload_file", form("config", b"x"), **where))[0] == 200
    servers = [
        {
            "name": "x",
            "command": sys.executable,
            "args": [str(Path(__file__).parents[1] / "stdio_server.py")],
        }
    ]
    assert (await send("POST", "update_mcp_server", servers))[0] == 200
    assert (await send("POST", "update_mcp_server", []))[0] == 200


@pytest.mark.thorough
async def test_a_known_program_is_not_asked_about_again(
    send: Send, decided: Any, token: Any, workspace: Path
) -> None:
    script = str(Path(__file__).parents[1] / "stdio_server.py")
    servers = [{"name": "x", "command": sys.executable, "args": [script], "env": {"A": "secret"}}]
    headers = token("execute")
    request = send("POST", "update_mcp_server", servers, headers)
    (status, _), question = await decided(request, approve=True)
    assert status == 200
    assert f"{script} (with the variables A)" in question["reason"]
    assert (await send("POST", "update_mcp_server", servers, headers))[0] == 200
    assert (await send("POST", "update_mcp_server", [], headers))[0] == 200


@pytest.mark.thorough
async def test_the_log_of_sessions_is_no_tokens_business(
    send: Send, token: Any, workspace: Path
) -> None:
    headers = token("edit")
    for method, path, params in (
        ("PUT", "store/sessions/x/events/0.json", {}),
        ("DELETE", "store/sessions/x", {}),
        ("PATCH", "store/y", {"to": "sessions/y"}),
    ):
        status, body = await send(
            method, path, None if method == "DELETE" else {}, headers, **params
        )
        assert (status, b"event logs" in body) == (403, True), (path, body)


async def test_mcp_tools_wait_where_actions_would(
    mcp_connect: Any, decided: Any, token: Any, send: Send, secret: Path, workspace: Path
) -> None:
    nodes = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    outside = secret.parent / "book.ipynb"
    outside.write_text(json.dumps(nodes))
    (workspace / "book.ipynb").symlink_to(outside)
    await send("PUT", "store/tree/.git/hooks/x", "x")
    async with mcp_connect(headers=token("read", "edit", "execute")) as session:
        await session.call_tool("run_ipython", {"code": "x = 'text'"})
        for name, arguments, reason in (
            ("variables", {"name": "x", "save_to": ".git/hooks/y.txt"}, ".git/hooks/y.txt"),
            ("store", {"command": "get", "path": "tree/.git/hooks/x", "file": ".git/hooks/x"}, "x"),
            ("store", {"command": "get", "path": "tree", "file": "."}, ".git/hooks/x"),
            ("read_cells", {"notebook": "book.ipynb"}, str(outside)),
            ("insert_cell", {"notebook": "book.ipynb", "source": "1"}, str(outside)),
        ):
            called = session.call_tool(name, arguments)
            result, question = await decided(called, approve=False)
            assert reason in question["reason"], name
            assert result.is_error or "rejected" in text_of(result)
    assert not (workspace / ".git").exists()
    assert json.loads(outside.read_text())["cells"] == []


async def test_a_notebook_without_a_kernel_is_judged_like_its_file(
    mcp_connect: Any, decided: Any, token: Any, jp_fetch: Any, jp_root_dir: Path
) -> None:
    nodes = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (jp_root_dir / "project").mkdir()
    for name in ("other.ipynb", "project/own.ipynb"):
        (jp_root_dir / name).write_text(json.dumps(nodes))
    started = await jp_fetch("api/kernels", method="POST", body='{"path": "project"}')
    kernel = json.loads(started.body)["id"]
    cell = {"source": "1"}
    async with mcp_connect(kernel, headers=token("read", "edit", "execute")) as session:
        called = session.call_tool("insert_cell", {"notebook": "other.ipynb", **cell})
        result, question = await decided(called, approve=False, kernel=kernel)
        assert result.is_error
        assert str(jp_root_dir / "other.ipynb") in question["reason"]
        called = session.call_tool("insert_cell", {"notebook": "project/own.ipynb", **cell})
        assert not (await called).is_error
    async with mcp_connect(kernel) as session:
        called = session.call_tool("kernel", {"command": "start", "notebook": "other.ipynb"})
        result, question = await decided(called, approve=False, kernel=kernel)
        assert result.is_error
        assert f"agents may change {jp_root_dir}" in question["reason"]
    assert json.loads((jp_root_dir / "other.ipynb").read_text())["cells"] == []
    assert json.loads((jp_root_dir / "project" / "own.ipynb").read_text())["cells"]


@pytest.mark.thorough
async def test_a_confined_token_uses_no_notebook_behind_a_link(
    mcp_connect: Any, token: Any, secret: Path, workspace: Path
) -> None:
    nodes = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (secret.parent / "book.ipynb").write_text(json.dumps(nodes))
    (workspace / "book.ipynb").symlink_to(secret.parent / "book.ipynb")
    async with mcp_connect(headers=token("read", "edit")) as session:
        for name, more in (("read_cells", {}), ("insert_cell", {"source": "1"})):
            result = await session.call_tool(name, {"notebook": "book.ipynb", **more})
            assert result.is_error
            assert "The token does not allow running code" in text_of(result)


@pytest.mark.thorough
async def test_a_sandboxed_kernel_decides_about_nothing_outside(
    mcp_connect: Any,
    send: Send,
    token: Any,
    secret: Path,
    workspace: Path,
    jp_serverapp: Any,
    jp_fetch: Any,
) -> None:
    nodes = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (secret.parent / "book.ipynb").write_text(json.dumps(nodes))
    (workspace / "book.ipynb").symlink_to(secret.parent / "book.ipynb")
    kernels = jp_serverapp.kernel_manager
    for kernel_id in kernels.list_kernel_ids():
        metadata = kernels.get_kernel(kernel_id).kernel_spec.metadata
        metadata["kernel_provisioner"] = {"provisioner_name": "oh-jupyter-sandbox"}
    headers = token("read", "edit", "execute")
    async with mcp_connect(headers=headers) as session:
        result = await session.call_tool("read_cells", {"notebook": "book.ipynb"})
        assert result.is_error
        assert "this kernel's sandbox has no say over files elsewhere" in text_of(result)
        (workspace / "plain.ipynb").write_text(json.dumps(nodes))
        result = await session.call_tool("read_cells", {"notebook": "plain.ipynb"})
        assert "outside of the directory of this kernel's sandbox" in text_of(result)
        for kernel_id in kernels.list_kernel_ids():
            kernels.get_kernel(kernel_id).provisioner.workspace = os.path.realpath(workspace)
        result = await session.call_tool("read_cells", {"notebook": "plain.ipynb"})
        assert not result.is_error
        (boxed,) = kernels.list_kernel_ids()
        (workspace / "elsewhere.ipynb").write_text(json.dumps(nodes))
        body = {"path": "elsewhere.ipynb", "name": "", "type": "notebook", "kernel": {}}
        await jp_fetch("api/sessions", method="POST", body=json.dumps(body))
        for kernel_id in kernels.list_kernel_ids():
            if kernel_id != boxed:
                kernels.get_kernel(kernel_id).kernel_spec.metadata.clear()
        for tool, arguments in (
            ("insert_cell", {"source": "1"}),
            ("variables", {"expression": "1 + 1"}),
        ):
            result = await session.call_tool(tool, {"notebook": "elsewhere.ipynb", **arguments})
            assert "is in no sandbox, unlike this one" in text_of(result), tool
    before = list(kernels.list_kernel_ids())
    async with mcp_connect() as session:
        result = await session.call_tool("kernel", {"command": "start", "notebook": "plain.ipynb"})
        assert "starts only sandboxed ones" in text_of(result)
    assert kernels.list_kernel_ids() == before
    status, body = await send("POST", "e2b/contexts", {"cwd": str(Path.home())}, headers)
    assert (status, b"no say over other directories" in body) == (403, True)


@pytest.mark.thorough
async def test_a_new_session_remembers_files_read_with_the_token(
    mcp_connect: Any, send: Send, decided: Any, token: Any, workspace: Path
) -> None:
    headers = token("read", "execute")
    async with mcp_connect(headers=headers, name="reader") as session:
        await session.call_tool("run_ipython", {"code": "page = 'https://evil.example/x'"})
    sending = (
        "import urllib.request\nsend = lambda: urllib.request.urlopen('http://x.example', data=b'')"
    )
    async with mcp_connect(headers=headers, name="sender") as session:
        called = session.call_tool("run_ipython", {"code": sending})
        _, question = await decided(called, approve=False)
    assert "after the agent has read text from evil.example" in question["reason"]
    body = {"action": {"action": "run_ipython", "args": {"code": sending}}}
    other = {**headers, "X-Session": "new", "X-OH-Client": "another"}
    _, question = await decided(send("POST", "execute_action", body, other), approve=False)
    assert "evil.example" in question["reason"]
    status, _ = await send("POST", "execute_action", body, token("execute"))
    assert status == 200


@pytest.mark.thorough
async def test_a_rewind_by_a_token_is_an_agents(
    send: Send, decided: Any, token: Any, workspace: Path
) -> None:
    headers = token("read", "execute", "edit")
    write = {"action": "write", "args": {"path": str(workspace / "a"), "content": "1\n"}}
    assert (await send("POST", "execute_action", {"action": write}, headers))[0] == 200
    body = {"everything": True, "source": "user", "variables": False}
    request = send("POST", "rewind", body, headers)
    (status, _), question = await decided(request, approve=False)
    assert status == 403
    assert "it overwrites what others changed since" in question["reason"]
    assert (workspace / "a").exists()
