"""The workspace of OpenHands' SDK below a kernel, as its ``RemoteWorkspace`` asks for it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.shared_server

SDK_PYTHON = os.environ.get("OH_JUPYTER_TEST_OPENHANDS_SDK", "")


class Workspace:
    """The SDK's requests, which show the token as the SDK shows any key."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.http = requests.Session()
        self.http.headers["X-Session-API-Key"] = token

    def ask(self, method: str, path: str, code: int = 200, **options: Any) -> Any:
        answer = self.http.request(method, f"{self.url}/{path}", timeout=60, **options)
        assert answer.status_code == code, answer.text
        return answer.json()

    def start(self, command: str, **more: Any) -> str:
        body = {"command": command, "timeout": 30, **more}
        return str(self.ask("POST", "api/bash/start_bash_command", json=body)["id"])

    def search(self, **params: Any) -> Any:
        return self.ask("GET", "api/bash/bash_events/search", params=params)

    def output(self, key: str) -> dict[str, Any]:
        """Wait for a command's end and return its output."""
        wanted = {"kind__eq": "BashOutput", "command_id__eq": key, "sort_order": "TIMESTAMP"}
        return dict(wait_until(lambda: self.search(**wanted)["items"])[-1])


@pytest.fixture
def workspace(shared_server: Any) -> Iterator[Workspace]:
    token = shared_server.headers["Authorization"].removeprefix("token ")
    opened = Workspace(f"{shared_server.url}/oh_jupyter", token)
    yield opened
    opened.http.close()


def test_health_needs_no_login(workspace: Workspace) -> None:
    for path, status in (("health", "ok"), ("ready", "ready"), ("kernels/none/health", "ok")):
        answer = requests.get(f"{workspace.url}/{path}", timeout=30)
        assert answer.json() == {"status": status}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "server_info"),
        ("POST", "api/bash/start_bash_command"),
        ("POST", "api/bash/execute_bash_command"),
        ("POST", "api/bash/bash_commands/x/stop"),
        ("GET", "api/bash/bash_events/search"),
        ("DELETE", "api/bash/bash_events"),
        ("POST", "api/file/upload?path=/tmp/x"),
        ("GET", "api/file/download?path=/etc/hostname"),
        ("GET", "api/git/changes?path=/tmp"),
        ("GET", "api/git/diff?path=/tmp/x"),
    ],
)
def test_all_else_needs_the_key(workspace: Workspace, method: str, path: str) -> None:
    for headers in ({}, {"X-Session-API-Key": "wrong"}):
        answer = requests.request(method, f"{workspace.url}/{path}", headers=headers, timeout=30)
        assert answer.status_code == 403, answer.text


@pytest.mark.thorough
def test_commands_are_actions_of_the_log(workspace: Workspace, tmp_path: Path) -> None:
    assert "uptime" in workspace.ask("GET", "server_info")
    key = workspace.start("pwd; echo to stderr >&2; exit 3", cwd=str(tmp_path))
    output = workspace.output(key)
    assert (output["exit_code"], output["stdout"]) == (3, f"{tmp_path}\nto stderr\n")
    assert workspace.ask("GET", f"api/bash/bash_events/{output['id']}") == output
    events = workspace.ask("GET", "events?limit=1000&whole=true")["events"]
    assert any("echo to stderr" in event.get("args", {}).get("command", "") for event in events)
    done = workspace.ask("POST", "api/bash/execute_bash_command", json={"command": "echo again"})
    assert (done["exit_code"], done["stdout"]) == (0, "again\n")
    # Each is by itself: nothing of a shell stays.
    workspace.output(workspace.start("cd /; x=1"))
    assert "x is" in workspace.output(workspace.start("echo x is $x"))["stdout"]


def test_events_come_in_pages_and_are_forgotten(workspace: Workspace) -> None:
    workspace.ask("DELETE", "api/bash/bash_events")
    for number in range(3):
        workspace.output(workspace.start(f"echo {number}"))
    outputs = {"kind__eq": "BashOutput", "limit": 2}
    page = workspace.search(**outputs)
    assert [item["stdout"] for item in page["items"]] == ["0\n", "1\n"]
    page = workspace.search(**outputs, page_id=page["next_page_id"])
    assert [item["stdout"] for item in page["items"]] == ["2\n"]
    assert page["next_page_id"] is None
    newest = workspace.search(**outputs, sort_order="TIMESTAMP_DESC")["items"][0]
    assert newest["stdout"] == "2\n"
    assert workspace.search(**outputs, order__gt=0)["items"] == []
    assert workspace.ask("DELETE", "api/bash/bash_events") == {"cleared_count": 6}
    assert workspace.search() == {"items": [], "next_page_id": None}


def test_a_command_is_stopped(workspace: Workspace, tmp_path: Path) -> None:
    pipe = tmp_path / "pid_pipe"
    os.mkfifo(pipe)
    key = workspace.start(f"echo $BASHPID > {pipe}; exec sleep 600")
    process = int(pipe.read_text())
    assert workspace.ask("POST", f"api/bash/bash_commands/{key}/stop") == {"success": True}
    output = workspace.output(key)
    assert (output["exit_code"], output["stderr"]) == (-1, "The command was stopped")
    wait_until(lambda: not psutil.pid_exists(process), what="its end")
    workspace.ask("POST", "api/bash/bash_commands/unknown/stop", 404)


def test_files_go_there_and_back(workspace: Workspace, tmp_path: Path) -> None:
    path, data = tmp_path / "new" / "a b.bin", os.urandom(3_000_000)
    answer = workspace.ask(
        "POST", "api/file/upload", params={"path": str(path)}, files={"file": ("other", data)}
    )
    assert answer == {"success": True, "file_size": len(data)}
    assert path.read_bytes() == data
    address = f"{workspace.url}/api/file/download"
    response = workspace.http.get(address, params={"path": str(path)}, timeout=60)
    assert response.content == data
    for wrong, code in (("a.bin", 400), (str(tmp_path), 400), (str(tmp_path / "none"), 404)):
        workspace.ask("GET", "api/file/download", code, params={"path": wrong})
    workspace.ask(
        "POST", "api/file/upload", 400, params={"path": "a.bin"}, files={"file": ("x", b"x")}
    )


def test_git_lists_changes(workspace: Workspace, tmp_path: Path) -> None:
    subprocess.run(
        "git init -q; printf 'a\\r\\n\\tb' > 'f ü'; echo d > gone; seq 99 > old; git add .; "
        "git -c user.email=a@b -c user.name=x commit -qm x; "
        "printf 'a\\r\\n\\tc' > 'f ü'; rm gone; git mv old moved; : > new",
        shell=True,
        check=True,
        cwd=tmp_path,
    )
    changes = workspace.ask("GET", "api/git/changes", params={"path": str(tmp_path)})
    assert {change["path"]: change["status"] for change in changes} == {
        "f ü": "UPDATED",
        "gone": "DELETED",
        "moved": "MOVED",
        "new": "ADDED",
    }

    def diff(name: str, **params: str) -> Any:
        return workspace.ask("GET", "api/git/diff", params={"path": str(tmp_path / name)} | params)

    assert diff("f ü") == {"modified": "a\r\n\tc", "original": "a\r\n\tb"}
    assert diff("gone") == {"modified": None, "original": "d\n"}
    assert diff("new") == {"modified": "", "original": None}
    assert diff("gone", ref="HEAD")["original"] == "d\n"
    workspace.ask("GET", "api/git/changes", 422, params={"path": str(tmp_path), "ref": "--x"})
    workspace.ask("GET", "api/git/changes", 400, params={"path": "/"})
    workspace.ask("GET", "api/git/changes", 400, params={"path": "relative"})


def test_wrong_commands_are_refused(workspace: Workspace) -> None:
    for body in ({}, {"command": ""}, {"command": 1}, [], {"command": "x", "timeout": "1"}):
        workspace.ask("POST", "api/bash/start_bash_command", 422, json=body)
    body = {"command": "sleep 60", "timeout": 0.3}
    assert workspace.ask("POST", "api/bash/execute_bash_command", json=body)["exit_code"] == -1


def messages_of_socket(
    workspace: Workspace, query: str, headers: Any, frame: Any, count: int
) -> Any:
    """The first messages of a socket, and what it was closed with; a command is started twice."""
    address = f"{workspace.url.replace('http', 'ws', 1)}/sockets/bash-events{query}"

    async def listen() -> Any:
        async with asyncio.timeout(60):
            socket = await websocket_connect(HTTPRequest(address, headers=headers))
            try:
                if frame:
                    await socket.write_message(json.dumps(frame))
                messages = [await socket.read_message() for _ in range(min(count, 2))]
                if count > 2:  # it listens now
                    await asyncio.to_thread(workspace.start, "echo later")
                    messages += [await socket.read_message() for _ in range(count - 2)]
                return messages, socket.close_code
            finally:
                is_open = socket.close_code is None
                socket.close()
                while is_open and await socket.read_message() is not None:
                    pass  # until it is closed

    return asyncio.run(listen())


@pytest.mark.parametrize("way", ["header", "frame"])
def test_a_socket_sends_events(workspace: Workspace, way: str) -> None:
    workspace.ask("DELETE", "api/bash/bash_events")
    workspace.output(workspace.start("echo earlier"))
    headers = {"X-Session-API-Key": workspace.token} if way == "header" else {}
    frame = {"type": "auth", "session_api_key": workspace.token} if way == "frame" else None
    messages, _ = messages_of_socket(workspace, "?resend_mode=all", headers, frame, 4)
    events = [json.loads(message) for message in messages]
    assert [event["kind"] for event in events] == ["BashCommand", "BashOutput"] * 2
    assert [event["stdout"] for event in events[1::2]] == ["earlier\n", "later\n"]


def test_a_socket_without_the_key_is_closed(workspace: Workspace) -> None:
    assert messages_of_socket(workspace, "", {}, {"session_api_key": "wrong"}, 1) == ([None], 4001)


SDK_SCRIPT = """
import sys
from pathlib import Path
from openhands.sdk.workspace import RemoteWorkspace

url, token, place = sys.argv[1:]
workspace = RemoteWorkspace(host=url, api_key=token, working_dir=place)
assert workspace.alive
assert "uptime" in workspace.get_server_info()
result = workspace.execute_command("echo out; exit 3", cwd=place, timeout=60)
assert (result.exit_code, result.stdout) == (3, "out\\n"), result
late = workspace.execute_command("sleep 600", timeout=1.0)
assert late.timeout_occurred, late
there, back = Path(place, "there"), Path(place, "back")
assert workspace.file_upload(__file__, there).success
assert workspace.file_download(there, back).success
assert back.read_bytes() == Path(__file__).read_bytes()
workspace.execute_command("git init -q", cwd=place, timeout=60)
changes = workspace.git_changes(place)
assert "there" in {str(change.path) for change in changes}, changes
assert workspace.git_diff(there).modified == there.read_text()
print("all is well")
"""


@pytest.mark.timeout(300)
@pytest.mark.skipif(not SDK_PYTHON, reason="OH_JUPYTER_TEST_OPENHANDS_SDK names no Python")
def test_the_sdks_own_workspace_works(workspace: Workspace, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SDK_SCRIPT)
    directory = tmp_path / "place"
    directory.mkdir()
    done = subprocess.run(
        [SDK_PYTHON, script, workspace.url, workspace.token, directory],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "all is well" in done.stdout, done.stderr
