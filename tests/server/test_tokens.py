"""Scoped tokens: each does what its scopes and its notebook allow over REST and MCP, no more."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_client import McpError, text_of
from nbformat.v4 import new_code_cell, new_notebook

from oh_jupyter.errors import ConfigError
from oh_jupyter.server.state import state_of
from oh_jupyter.server.tokens import ScopedTokens
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.shared import open_ledger

Act = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def token(jp_serverapp: Any, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Make a token; return the headers of a request with it."""
    tokens = ScopedTokens(Ledger(tmp_path / "ledger.db"))
    state_of(jp_serverapp.web_app.settings).tokens = ScopedTokens(open_ledger(tmp_path))

    def token(*scopes: str, **options: Any) -> dict[str, str]:
        return {"Authorization": f"token {tokens.create(scopes, **options)[1]}"}

    token.all = tokens  # type: ignore[attr-defined]
    return token


@pytest.fixture
def act_with(ask: Any) -> Act:
    async def act(headers: dict[str, str], kind: str, kernel: str = "", **args: Any) -> Any:
        path = ["kernels", kernel] if kernel else []
        body = {"action": {"action": kind, "args": args}}
        return await ask(*path, "execute_action", body=body, headers=headers)

    return act


@pytest.fixture
def open_notebook(jp_serverapp: Any, jp_root_dir: Path) -> Callable[[str], Awaitable[str]]:
    """Open a notebook as JupyterLab does; return its kernel's id."""

    async def open_notebook(name: str) -> str:
        nbformat.write(new_notebook(cells=[new_code_cell("x = 20")]), jp_root_dir / name)
        session = await jp_serverapp.session_manager.create_session(
            path=name, name=name, type="notebook", kernel_name="python3"
        )
        return str(session["kernel"]["id"])

    return open_notebook


async def test_resources_need_the_scopes_of_their_tools(
    mcp_connect: Any, token: Any, open_notebook: Any
) -> None:
    await open_notebook("book.ipynb")
    async with mcp_connect(headers=token("browse")) as session:
        assert await session.list_resources() == []
        with pytest.raises(McpError, match="read"):
            await session.read_resource("jupyter://notebooks/book.ipynb")
        with pytest.raises(McpError, match="read"):
            await session.get_prompt("run_from_top_to_bottom")
    async with mcp_connect(headers=token("read", notebook="book.ipynb")) as session:
        assert len(await session.list_resources()) == 1
        assert await session.read_resource("jupyter://notebooks/book.ipynb")
        with pytest.raises(McpError, match="only the notebook"):
            await session.read_resource("jupyter://notebooks/other.ipynb")


@pytest.mark.thorough
async def test_each_action_needs_its_scope(act_with: Act, token: Any, jp_root_dir: Path) -> None:
    file = jp_root_dir / "note.txt"
    file.write_text("one\n")
    actions: dict[str, tuple[str, dict[str, Any]]] = {
        "read": ("read", {"path": str(file)}),
        "edit": ("write", {"path": str(file), "content": "two\n"}),
        "execute": ("run", {"command": "echo hi"}),
    }
    for allowed in actions:
        headers = token(allowed)
        for scope, (kind, args) in actions.items():
            status, answer = await act_with(headers, kind, **args)
            if scope == allowed:
                assert (status, answer.get("observation")) == (200, kind)
            else:
                assert status == 403
                assert answer["detail"].startswith(f"The token allows {allowed}; this needs")
    assert file.read_text() == "two\n"


@pytest.mark.thorough
async def test_other_endpoints_follow_the_scopes(ask: Any, token: Any) -> None:
    headers = token("read")
    assert (await ask("alive", headers=headers))[0] == 200
    assert (await ask("events", headers=headers))[0] in (200, 204)
    for method, path, body in (
        ("POST", ["rewind"], {"id": 1}),
        ("POST", ["update_mcp_server"], []),
        ("PUT", ["store", "x"], b"x"),
        ("GET", ["vscode"], None),
        ("POST", ["confirmations", "0"], {"approve": False}),
    ):
        status, answer = await ask(*path, method=method, body=body, headers=headers)
        assert (status, answer["detail"]) == (403, "The token allows read, and not this request")


async def test_jupyters_own_addresses_do_not_know_it(jp_fetch: Any, token: Any) -> None:
    from tornado.httpclient import HTTPClientError

    for path in (("api", "kernels"), ("api", "contents")):
        with pytest.raises(HTTPClientError) as refused:
            await jp_fetch(*path, headers=token("read", "edit", "execute", "browse"))
        assert refused.value.code == 403


@pytest.mark.parametrize("end", ["revoked", "expired", "invented", "damaged", "unreadable"])
async def test_a_token_that_is_not_valid(
    ask: Any, token: Any, jp_serverapp: Any, monkeypatch: Any, end: str
) -> None:
    headers = token("read", expires_seconds=3600)
    assert (await ask("alive", headers=headers))[0] == 200
    if end == "revoked":
        token.all.revoke(token.all.list()[0].id)
    elif end == "expired":
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3600)
    elif end == "invented":
        headers = {"Authorization": "token ohj_invented"}
    else:
        path = token.all.ledger.path
        token.all.ledger.close()
        state_of(jp_serverapp.web_app.settings).tokens.ledger.close()
        path.write_bytes(b"x" * 5000)
        if end == "unreadable":
            path.unlink()
            path.mkdir()
    status, answer = await ask("alive", headers=headers)
    assert status == 403
    assert "token is missing or wrong" in answer["detail"]


@pytest.mark.thorough
async def test_a_notebooks_token_allows_its_kernel_only(
    act_with: Act, ask: Any, token: Any, open_notebook: Any
) -> None:
    mine, other = await asyncio.gather(open_notebook("mine.ipynb"), open_notebook("other.ipynb"))
    headers = token("execute", "read", notebook="mine.ipynb")
    code = {"code": "print(6 * 7)"}
    for kernel in (mine, ""):  # its kernel is the default one
        status, answer = await act_with(headers, "run_ipython", kernel, **code)
        assert (status, answer["content"].partition("\n")[0]) == (200, "42")
    refused = "The token allows only the kernel of mine.ipynb, which must be open"
    status, answer = await act_with(headers, "run_ipython", other, **code)
    assert (status, answer["detail"]) == (403, refused)
    status, answer = await ask("kernels", other, "events", headers=headers)
    assert (status, answer["detail"]) == (403, refused)
    status, answer = await act_with(token("read", notebook="closed.ipynb"), "read", path="/x")
    assert status == 403
    events = (await ask("kernels", mine, "events", headers=headers))[1]["events"]
    assert events[0]["oh_jupyter"]["actor"]["user"].startswith("token (")


READING = {"read", "list_notebooks", "read_cells", "changes", "kernel", "store", "variables"}
"""Tools that a token for reading shows; what they change needs more."""


@pytest.mark.thorough
async def test_an_mcp_client_sees_and_uses_the_tools_of_its_scopes(
    mcp_connect: Any, token: Any, open_notebook: Any
) -> None:
    await asyncio.gather(open_notebook("mine.ipynb"), open_notebook("other.ipynb"))
    headers = token("read", notebook="mine.ipynb")
    async with mcp_connect(headers=headers) as session:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == READING
        listed = json.loads(text_of(await session.call_tool("list_notebooks", {})))
        assert [each["path"] for each in listed] == ["mine.ipynb"]
        assert "x = 20" in text_of(await session.call_tool("read_cells", {}))
        refused = await session.call_tool("read_cells", {"notebook": "other.ipynb"})
        assert refused.is_error
        assert text_of(refused) == "read_cells: The token allows only the notebook mine.ipynb"
        for name, arguments in (
            ("run", {"command": "echo hi"}),
            ("edit_cell", {"cell": 0, "source": "x"}),
            ("run_cell", {"cell": 0}),
        ):
            refused = await session.call_tool(name, arguments)
            assert refused.is_error
            assert text_of(refused).startswith(f"{name}: The token allows read; this needs")


def patch_of(*names: str) -> dict[str, str]:
    """The fields of an edit that adds files."""
    added = "".join(f"*** Add File: {name}\n+x\n" for name in names)
    content = f"*** Begin Patch\n{added}*** End Patch\n"
    return {"path": "", "command": "apply_patch", "content": content}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "args", "message"),
    [
        ("read", {"path": "/etc/passwd"}, "only files of the workspace"),
        ("read", {"path": "link"}, "only files of the workspace"),
        ("read", {"path": "runtime/jpserver-1.json"}, "Jupyter's own files"),
        ("write", {"path": "../up.txt", "content": "x"}, "only files of the workspace"),
        ("write", {"path": ".git/hooks/pre-commit", "content": "x"}, "files that run code"),
        ("edit", patch_of("../up.txt"), "only files of the workspace"),
        ("edit", patch_of("inside.txt", ".git/hooks/x"), "files that run code"),
        ("write", {"path": "Makefile", "content": "x"}, "Makefile runs when you run make."),
        ("edit", patch_of("tests/conftest.py"), "runs when you run pytest"),
        ("edit", patch_of("random.py"), "runs when you import random"),
        ("edit", patch_of("link"), "only files of the workspace"),
        ("browse", {"url": "file:///etc/passwd"}, "only pages of the web"),
        ("browse", {"url": "/etc/passwd"}, "only pages of the web"),
        ("browse_interactive", {"browser_actions": "goto('\\x66ile:///x')"}, "only pages of the"),
        ("browse_interactive", {"browser_actions": "upload_file('1', 'x')"}, "cannot be uploaded"),
    ],
)
async def test_without_execute_an_agent_is_confined(
    act_with: Act,
    token: Any,
    jp_root_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    args: dict[str, Any],
    message: str,
) -> None:
    (jp_root_dir / "link").symlink_to("/etc/passwd")
    (jp_root_dir / "runtime").mkdir()
    (jp_root_dir / "runtime" / "jpserver-1.json").write_text("{}")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(jp_root_dir / "runtime"))
    status, answer = await act_with(token("read", "edit", "browse"), kind, **args)
    assert (status, answer["observation"]) == (200, "error")
    assert answer["content"].startswith("The token does not allow running code, so")
    assert message in answer["content"]


async def test_files_that_run_need_execute(
    act_with: Act, mcp_connect: Any, token: Any, jp_root_dir: Path
) -> None:
    makefile = jp_root_dir / "Makefile"
    makefile.write_text("all:\n\ttrue\n")
    (jp_root_dir / "notes.txt").write_text("all:\n")
    (jp_root_dir / "GNUmakefile").symlink_to("notes.txt")
    headers = token("read", "edit")
    replacement = {"command": "str_replace", "old_str": "true", "new_str": "false"}
    closed = (
        ("write", {"path": "Makefile", "content": "x"}),
        ("write", {"path": "GNUmakefile", "content": "x"}),
        ("edit", {"path": "Makefile", **replacement}),
        ("edit", patch_of("notes.md", "sub/conftest.py")),
    )
    message = "runs when you run .*. A token with execute may change it."
    for kind, args in closed:
        answer = (await act_with(headers, kind, **args))[1]
        assert answer["observation"] == "error"
        assert re.search(message, answer["content"])
    async with mcp_connect(headers=headers) as session:
        for name, arguments in (
            *closed[:-1],
            ("edit", {"command": "create", "path": ".envrc", "file_text": "x"}),
        ):
            result = await session.call_tool(name, arguments)
            assert result.is_error
            assert "A token with execute may change it." in text_of(result), name
        shown = await session.call_tool("read", {"path": "Makefile"})
        assert "true" in text_of(shown)
    assert makefile.read_text() == "all:\n\ttrue\n"
    assert (jp_root_dir / "notes.txt").read_text() == "all:\n"
    assert not (jp_root_dir / ".envrc").exists()
    for name in ("AGENTS.md", "analysis.py", "test_analysis.py"):
        answer = (await act_with(headers, "write", path=name, content="x"))[1]
        assert answer["observation"] == "write", name
    more = token("read", "edit", "execute")
    answer = (await act_with(more, "write", path="Makefile", content="all:\n\tfalse\n"))[1]
    assert answer["observation"] == "write"
    assert makefile.read_text() == "all:\n\tfalse\n"


@pytest.mark.thorough
async def test_a_confined_agent_lists_no_directories(ask: Any, token: Any) -> None:
    body = {"path": "/"}
    assert (await ask("list_files", body=body, headers=token("read", "edit")))[0] == 403
    assert (await ask("list_files", body=body, headers=token("read", "execute")))[0] == 200


@pytest.mark.thorough
async def test_to_edit_is_not_to_run(mcp_connect: Any, token: Any, open_notebook: Any) -> None:
    await open_notebook("mine.ipynb")
    async with mcp_connect(headers=token("read", "edit")) as session:
        cell = {"source": "print(1)", "notebook": "mine.ipynb"}
        refused = await session.call_tool("insert_cell", {**cell, "run": True})
        assert refused.is_error
        assert "this needs 'execute'" in text_of(refused)
        assert not (await session.call_tool("insert_cell", cell)).is_error
        shown = text_of(await session.call_tool("read_cells", {"notebook": "mine.ipynb"}))
        assert shown.startswith("mine.ipynb: 2 cells")


def test_only_a_hash_is_stored_and_only_for_the_user(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state" / "ledger.db")
    record, secret = ScopedTokens(ledger).create(["edit", "read"], notebook="a b", label="Claude")
    assert ScopedTokens(ledger).find(secret) == record
    assert str(record) == f"{record.id}  read, edit in a b (Claude)"
    ledger.close()
    files = list(ledger.path.parent.iterdir())
    assert ledger.path in files
    for file in files:
        assert secret.encode() not in file.read_bytes()
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_names_need_not_be_unicode(tmp_path: Path) -> None:
    tokens = ScopedTokens(Ledger(tmp_path / "ledger.db"))
    record, secret = tokens.create(["read"], notebook="caf\udce9.ipynb", label="caf\udce9")
    assert tokens.find(secret) == record
    assert (record.notebook, record.label) == ("caf\udce9.ipynb", "caf?")
    assert tokens.find("ohj_\udce9") is None


@pytest.mark.parametrize(
    ("scopes", "message"),
    [([], "name what the token allows"), (["write"], "there is no scope 'write'")],
)
def test_wrong_scopes(tmp_path: Path, scopes: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScopedTokens(Ledger(tmp_path / "ledger.db")).create(scopes)
    assert not (tmp_path / "ledger.db").exists()
