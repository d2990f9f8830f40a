"""VS Code in the browser: a stand-in checks how it is started, a real one that it serves.

The stand-in is a program that reads the arguments as the real ones do, refuses what it does not
know, and serves the configured answer on its port.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from oh_jupyter.config import Settings
from oh_jupyter.errors import PluginError
from oh_jupyter.plugins import ALL_PLUGINS, VSCodePlugin, VSCodeRequirement
from oh_jupyter.runtime import Runtime
from oh_jupyter.testing import wait_until

STAND_IN = """#!{python}
import argparse, http.server, json, os, sys
name = os.path.basename(sys.argv[0])
parser = argparse.ArgumentParser(allow_abbrev=False)
if name == "code-server":
    parser.add_argument("folder")
    for option in ("--config", "--bind-addr", "--session-socket", "--welcome-text"):
        parser.add_argument(option, required=True)
    for option in ("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args()
    host, port = given.bind_addr.split(":")
    auth, password = open(given.config).read().split()[1::2]
    assert auth == "password" and not {{"HASHED_PASSWORD", "VSCODE_IPC_HOOK_CLI"}} & {{*os.environ}}
    token = password
else:
    parser.add_argument("--disable-workspace-trust", action="store_true")
    for option in ("--host", "--port", "--connection-token-file", "--server-base-path"):
        parser.add_argument(option, required=True)
    parser.add_argument("--telemetry-level")
    given = parser.parse_args()
    host, port = given.host, given.port
    token = open(given.connection_token_file).read()
said = {{**vars(given), "token": token, "cwd": os.getcwd(), "pid": os.getpid()}}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({{**said, "path": self.path}}).encode())
    def log_message(self, *args):
        pass
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
"""


def program(folder: Path, name: str, text: str = STAND_IN) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A PATH with nothing but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("VSCODE_PORT", raising=False)
    monkeypatch.delenv("JUPYTERHUB_SERVICE_PREFIX", raising=False)
    return folder


def ask(port: int) -> dict[str, object]:
    return requests.get(f"http://127.0.0.1:{port}/x", timeout=30).json()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("name", ["openvscode-server", "code-server"])
def test_it_runs_on_loopback_with_a_token_in_the_workspace(
    on_path, tmp_path, monkeypatch, name: str
) -> None:
    program(on_path, name)
    monkeypatch.setenv("HASHED_PASSWORD", "somebody else's")
    monkeypatch.setenv("VSCODE_IPC_HOOK_CLI", "/run/of-the-terminal-that-jupyter-runs-in")
    workspace = tmp_path / "work space"
    workspace.mkdir()

    async def work() -> tuple[dict[str, object], str, str]:
        plugin = VSCodePlugin(str(workspace), base_url="/user/ann/")
        assert (plugin.vscode_port, plugin.vscode_connection_token, plugin.url()) == (None,) * 3
        await plugin.initialize("root")
        info, url, token = ask(plugin.vscode_port), plugin.url(), plugin.vscode_connection_token
        command_line = Path(f"/proc/{info['pid']}/cmdline").read_text()
        assert token not in command_line
        secret = Path(str(info.get("connection_token_file") or info["config"]))
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        await plugin.close()
        assert (plugin.vscode_port, plugin.vscode_connection_token) == (None, None)
        assert not secret.parent.exists()
        return info, url, token

    info, url, token = asyncio.run(work())
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", token)
    assert info["token"] == token
    assert info["cwd"] == str(workspace)
    assert info.get("host", "127.0.0.1") == "127.0.0.1"
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    assert query["folder"] == [str(workspace)]
    if name == "openvscode-server":
        assert info["server_base_path"] == parts.path.rstrip("/")
        assert re.fullmatch(r"/user/ann/proxy/absolute/\d+/", parts.path)
        assert query["tkn"] == [token]
    else:
        assert re.fullmatch(r"/user/ann/proxy/\d+/", parts.path)
        assert info["bind_addr"].startswith("127.0.0.1:")
    wait_until(lambda: not is_there(info["pid"]), what="the end of the server")


def test_a_missing_program_is_reported_with_install_instructions(on_path) -> None:
    with pytest.raises(PluginError, match=r"on the PATH.*npm install -g code-server"):
        asyncio.run(VSCodePlugin().initialize("root"))
    with pytest.raises(PluginError, match=r"no program '/no/code-server', which vscode_path"):
        asyncio.run(VSCodePlugin(path="/no/code-server").initialize("root"))


def test_one_that_ends_at_once_is_reported_with_its_last_words(on_path) -> None:
    program(on_path, "code-server", "#!/bin/sh\necho cannot do this here >&2\nexit 3\n")
    with pytest.raises(PluginError, match=r"status 3 .*cannot do this here"):
        asyncio.run(VSCodePlugin().initialize("root"))


def test_the_port_of_openhands_is_used_if_it_is_free(on_path, monkeypatch) -> None:
    program(on_path, "openvscode-server")

    async def port() -> int | None:
        plugin = VSCodePlugin()
        await plugin.initialize("root")
        try:
            return plugin.vscode_port
        finally:
            await plugin.close()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        monkeypatch.setenv("VSCODE_PORT", str(number))
        with pytest.raises(PluginError, match=f"Port {number} of VSCODE_PORT cannot be used"):
            asyncio.run(port())
    assert asyncio.run(port()) == number
    monkeypatch.setenv("VSCODE_PORT", "many")
    with pytest.raises(PluginError, match="not 'many'"):
        asyncio.run(port())


def test_it_is_loaded_only_if_it_is_asked_for(on_path, tmp_path) -> None:
    assert ALL_PLUGINS[VSCodeRequirement().name] is VSCodePlugin
    assert "vscode" not in Settings().plugins
    path = program(tmp_path / "elsewhere", "openvscode-server")
    settings = Settings(
        plugins=("vscode",), vscode_path=str(path), workspace_dir=str(tmp_path), file_store="memory"
    )
    runtime = Runtime(settings)
    try:
        plugin = runtime.submit(runtime.executor.plugins.find("vscode")).result(60)
        assert isinstance(plugin, VSCodePlugin)
        info = ask(plugin.vscode_port)
        assert info["cwd"] == str(tmp_path)
    finally:
        runtime.close()
    wait_until(lambda: not is_there(info["pid"]), what="the end of the server")


def test_it_ends_with_a_process_that_is_killed(on_path, tmp_path) -> None:
    path = program(tmp_path / "elsewhere", "openvscode-server")
    code = (
        "import asyncio, requests, sys, time\n"
        "from oh_jupyter.plugins import VSCodePlugin\n"
        f"plugin = VSCodePlugin(path={str(path)!r})\n"
        "asyncio.run(plugin.initialize('root'))\n"
        "print(plugin.vscode_port, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    info = ask(int(process.stdout.readline()))
    pidfd = os.pidfd_open(info["pid"])
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    async def ended() -> None:
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(pidfd, gone.set)
        await asyncio.wait_for(gone.wait(), 60)
        asyncio.get_running_loop().remove_reader(pidfd)

    asyncio.run(ended())
    os.close(pidfd)


REAL = os.environ.get("OH_JUPYTER_TEST_VSCODE") or next(
    filter(None, map(shutil.which, ("openvscode-server", "code-server"))), None
)


@pytest.mark.skipif(
    REAL is None,
    reason="no openvscode-server or code-server on the PATH or in OH_JUPYTER_TEST_VSCODE",
)
def test_a_real_server_serves_its_workbench_with_the_token(tmp_path) -> None:
    async def work() -> tuple[int, str, int]:
        plugin = VSCodePlugin(str(tmp_path), path=REAL)
        await plugin.initialize("root")
        base = f"http://127.0.0.1:{plugin.vscode_port}"
        try:
            return await asyncio.to_thread(visit, plugin, base)
        finally:
            await plugin.close()

    def visit(plugin: VSCodePlugin, base: str) -> tuple[int, str, int]:
        token = plugin.vscode_connection_token
        with requests.Session() as person:
            if "code-server" in os.path.basename(str(REAL)).split("openvs")[0]:
                refused = requests.get(f"{base}/", timeout=60).url.count("login")
                page = person.post(f"{base}/login", data={"password": token}, timeout=60)
            else:
                path = urlsplit(str(plugin.url())).path
                refused = requests.get(f"{base}{path}", timeout=60).status_code == 403
                page = person.get(f"{base}{plugin.url()}", timeout=60)
        return page.status_code, page.text, int(refused)

    status, text, refused = asyncio.run(work())
    assert (status, refused) == (200, 1)
    assert "workbench" in text
