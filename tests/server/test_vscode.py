"""``vscode/connection_token`` and the way to VS Code, with a stand-in for the program."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import uuid
from urllib.parse import parse_qsl, urlsplit

import psutil
import pytest
import requests
from playwright.sync_api import sync_playwright

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.testing import run_server

STAND_IN = f"""#!{sys.executable}
import http.server, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())
    def log_message(self, *args):
        pass
address = (arguments["--host"], int(arguments["--port"]))
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""

NEEDS_PROXY = pytest.mark.skipif(
    importlib.util.find_spec("jupyter_server_proxy") is None,
    reason="jupyter-server-proxy is not installed",
)


async def test_there_is_no_token_without_the_plugin(ask, jp_serverapp, plain_kernel) -> None:
    assert await ask("vscode", "connection_token") == (200, {"token": None})
    assert list(jp_serverapp.kernel_manager.list_kernel_ids()) == [plain_kernel]
    assert await ask("kernels", plain_kernel, "vscode", "connection_token") == (
        200,
        {"token": None},
    )
    assert (await ask("kernels", plain_kernel, "events"))[0] == 424
    status, result = await ask("vscode")
    assert (status, result["url"], result["token"]) == (200, None, None)
    assert "not among the settings' plugins" in result["problem"]
    assert (await ask("kernels", "nobody", "vscode", "connection_token"))[0] == 404


async def test_the_token_requires_execute_permission(ask, jp_serverapp, monkeypatch) -> None:
    asked = []

    def is_authorized(handler, user, action, resource) -> bool:
        asked.append((action, resource))
        return action != "execute"

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    assert (await ask("vscode", "connection_token"))[0] == 403
    assert (await ask("vscode"))[0] == 403
    assert asked == [("execute", "oh_jupyter:actions")] * 2


class TestWithThePlugin:
    @pytest.fixture
    def jp_server_config(self, jp_server_config, tmp_path):
        program = tmp_path / "openvscode-server"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        server = jp_server_config["ServerApp"]
        extensions = {**server["jpserver_extensions"], "jupyter_server_proxy": True}
        # Not all of that extension's handlers say that they authenticate, though they do.
        server = {**server, "allow_unauthenticated_access": True}
        return {
            **jp_server_config,
            "ServerApp": {**server, "jpserver_extensions": extensions},
            "OhJupyter": {
                "plugins": ["agent_skills", "jupyter", "vscode"],
                "vscode_path": str(program),
            },
        }

    @pytest.mark.thorough
    async def test_the_default_kernel_is_started_for_it(self, ask, act, tmp_path) -> None:
        status, answer = await ask("vscode", "connection_token")
        assert status == 200
        assert str(uuid.UUID(answer["token"])) == answer["token"]
        assert await ask("vscode", "connection_token") == (200, answer)
        status, info = await ask("server_info")
        kernel = info["default_kernel"]
        assert await ask("kernels", kernel, "vscode", "connection_token") == (200, answer)
        status, observation = await act("run_ipython", code="6 * 7")
        assert observation["content"].startswith("42\n")

    @pytest.mark.thorough
    @NEEDS_PROXY
    async def test_it_is_reached_through_the_servers_proxy(self, ask, jp_fetch) -> None:
        status, result = await ask("vscode")
        assert (status, result["problem"]) == (200, None)
        parts = urlsplit(result["url"])
        assert dict(parse_qsl(parts.query))["tkn"] == result["token"]
        below = parts.path.split("/proxy/absolute/")[1]
        answer = await jp_fetch("proxy", "absolute", below, params={"tkn": result["token"]})
        # It is asked by its whole address (of which the proxy quotes the base once more).
        assert f"/proxy/absolute/{below}?tkn={result['token']}" in answer.body.decode()


REAL = os.environ.get("OH_JUPYTER_TEST_VSCODE") or shutil.which("code-server")


@NEEDS_PROXY
@pytest.mark.skipif(not REAL, reason="no code-server on the PATH or in OH_JUPYTER_TEST_VSCODE")
@pytest.mark.timeout(240)
def test_a_person_opens_the_workspace_in_a_browser(tmp_path) -> None:
    (tmp_path / "hello.py").write_text("print('from the workspace')\n")
    options = (
        "--ServerApp.jpserver_extensions={'oh_jupyter': True, 'jupyter_server_proxy': True}",
        *("--OhJupyter.plugins=['jupyter', 'vscode']", f"--OhJupyter.vscode_path={REAL}"),
        f"--OhJupyter.workspace_dir={tmp_path}",
    )
    with run_server(
        tmp_path,
        *options,
        environment={"TMPDIR": str(tmp_path)},
        base="/user/ann",
        with_extension=False,
    ) as server:
        where = f"{server.url}/oh_jupyter/vscode"
        vscode = requests.get(where, headers=server.headers, timeout=90).json()
        assert vscode["problem"] is None
        token = requests.get(f"{where}/connection_token", headers=server.headers, timeout=60).json()
        assert token == {"token": vscode["token"]}
        origin = server.url.removesuffix("/user/ann")
        _open_in_browser(f"{server.url}/?token={server.token}", origin + vscode["url"], token)
    assert not [p for p in psutil.process_iter() if str(tmp_path) in _command(p)]


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _open_in_browser(login: str, address: str, token: dict[str, str]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_executable())
        page = browser.new_page()
        page.goto(login)
        page.goto(address)
        page.get_by_text("The password is the token").wait_for()
        page.fill("input[type=password]", token["token"])
        page.click("input[type=submit]")
        page.dblclick("text=hello.py", timeout=60_000)
        page.get_by_text("from the workspace").wait_for(timeout=60_000)
        browser.close()


@pytest.mark.server_config(
    OhJupyter={"plugins": ["vscode"], "vscode_path": "/no/openvscode-server"}
)
class TestWithoutTheProgram:
    async def test_a_missing_program_is_reported_with_install_instructions(self, ask) -> None:
        assert await ask("vscode", "connection_token") == (200, {"token": None})
        status, result = await ask("vscode")
        assert (status, result["url"]) == (200, None)
        assert "npm install -g code-server" in result["problem"]
