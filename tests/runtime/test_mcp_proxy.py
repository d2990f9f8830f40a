"""MCP servers behind the runtime, with a real one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path

import psutil
import pytest

from oh_jupyter.config import Settings
from oh_jupyter.errors import McpError
from oh_jupyter.events import MCPAction, MCPObservation
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.mcp import McpServer, proxy
from oh_jupyter.runtime.mcp.connection import McpConnection
from oh_jupyter.testing import wait_until

SCRIPT = str(Path(__file__).parents[1] / "stdio_server.py")


def small(name: str = "small", *more: str, **env: str) -> McpServer:
    return McpServer(name, sys.executable, (SCRIPT, *more), env)


@pytest.fixture
def sync(runtime: Runtime):
    def sync(*servers: McpServer) -> str:
        return runtime.submit(runtime.executor.mcp.sync(servers)).result(timeout=60)

    return sync


@pytest.fixture
def call(runtime: Runtime):
    def call(tool: str, time_limit: float | None = None, **arguments: object) -> dict:
        action = MCPAction(tool, arguments)
        action.timeout = time_limit
        observation = runtime.submit_action(action).result(timeout=60)
        assert isinstance(observation, MCPObservation), observation.content
        assert (observation.name, observation.arguments) == (tool, arguments)
        return json.loads(observation.content)

    return call


def names(runtime: Runtime, taken: tuple[str, ...] = ()) -> set[str]:
    return {tool["name"] for tool in runtime.executor.mcp.listed(taken)}


@pytest.mark.thorough
def test_a_server_is_started_and_called(runtime, sync, call, tmp_path) -> None:
    assert sync(small(KEY="value")) == ""
    assert {"echo", "environment", "picture"} <= names(runtime)
    answer = call("echo", text="héllo\n" * 3)
    assert answer.keys() == {"meta", "content", "structuredContent", "isError"}
    assert answer["content"][0]["text"] == "héllo\n" * 3
    assert answer["isError"] is False
    assert call("environment", name="KEY")["content"][0]["text"] == "value"
    os.environ["NOT_FOR_SERVERS"] = "secret"
    assert call("environment", name="NOT_FOR_SERVERS")["content"][0]["text"] == "not set"
    (image,) = call("picture")["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")


@pytest.mark.thorough
def test_an_error_of_a_tool_is_an_error(sync, call) -> None:
    sync(small())
    answer = call("fail")
    assert answer["isError"] is True
    assert "it does not work" in answer["content"][0]["text"]
    assert call("echo")["isError"] is True


@pytest.mark.thorough
def test_large_results_come_whole(sync, call) -> None:
    sync(small())
    text = "0123456789" * 200_000
    assert call("echo", text=text)["content"][0]["text"] == text


@pytest.mark.thorough
def test_several_servers_have_their_names_in_front(runtime, sync, call) -> None:
    assert sync(small("one"), small("two")) == ""
    assert {"one_echo", "two_echo"} <= names(runtime)
    assert "echo" not in names(runtime)
    assert call("one_pid") != call("two_pid")
    assert call("two_echo", text="x")["content"][0]["text"] == "x"


@pytest.mark.thorough
def test_no_name_of_ours_is_taken(runtime, sync, call) -> None:
    sync(small())
    assert "run" in names(runtime)
    taken = names(runtime, ("run", "small_echo", "echo"))
    assert "small_run" in taken
    assert not taken & {"run", "echo", "small_echo"}
    assert call("small_run")["content"][0]["text"] == "the small server's"


@pytest.mark.thorough
def test_a_server_that_fails_is_named_and_the_others_run(sync, call) -> None:
    log = sync(small("bad", "--fail"), small("good"), McpServer("none", "no-such-program"))
    bad, none = sorted(log.splitlines(), key=lambda line: "no-such" in line)
    assert "'bad'" in bad
    assert "this server has no configuration" in bad
    assert "'none'" in none
    assert call("good_echo", text="x")["content"][0]["text"] == "x"


@pytest.mark.thorough
def test_a_hanging_server_delays_no_other_call(
    runtime, sync, call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "SYNC_TIMEOUT_SECONDS", 0.1)
    gate, answered = tmp_path / "gate", threading.Event()
    log = sync(small("slow", "--wait-for", str(gate)))
    assert "'slow' has not answered within" in log
    assert names(runtime) == set()
    runtime.executor.tools.on_change(answered.set)
    gate.touch()
    assert answered.wait(60)
    assert call("echo", text="x")["content"][0]["text"] == "x"


@pytest.mark.thorough
def test_tools_of_other_servers_do_not_wait_for_one_that_hangs(
    runtime, sync, call, tmp_path: Path
) -> None:
    announced = threading.Event()
    runtime.executor.tools.on_change(announced.set)
    slow = small("slow", "--wait-for", str(tmp_path / "never"))
    syncing = runtime.submit(runtime.executor.mcp.sync([slow, small()]))
    assert announced.wait(60)
    assert call("small_echo", text="x")["content"][0]["text"] == "x"
    syncing.cancel()
    assert sync() == ""


def test_a_hanging_server_can_be_removed(
    sync, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "SYNC_TIMEOUT_SECONDS", 0.1)
    assert "'slow'" in sync(small("slow", "--wait-for", str(tmp_path / "never")))
    assert sync() == ""


def test_a_program_that_does_not_speak_mcp_is_named(sync) -> None:
    log = sync(McpServer("talks", "echo", ("hello",)))
    assert "'talks'" in log


@pytest.mark.thorough
def test_a_second_update_keeps_starts_and_ends(runtime, sync, call) -> None:
    sync(small("stays"), small("goes"))
    pid = call("stays_pid")["content"][0]["text"]
    gone = psutil.Process(int(call("goes_pid")["content"][0]["text"]))
    sync(small("stays"), small("comes"))
    wait_until(lambda: not gone.is_running(), what="the end of the server")
    assert call("stays_pid")["content"][0]["text"] == pid
    assert {"comes_echo", "stays_echo"} <= names(runtime)
    assert "goes_echo" not in names(runtime)
    sync(small("stays", KEY="another"))
    assert call("pid")["content"][0]["text"] != pid
    assert sync() == ""
    assert names(runtime) == set()
    action = MCPAction("echo", {"text": "x"})
    observation = runtime.submit_action(action).result(timeout=60)
    assert observation.kind == "error"
    assert "no tool 'echo'" in observation.content


@pytest.mark.thorough
def test_time_limits_and_cancelling_reach_the_server(runtime, sync, call, tmp_path) -> None:
    sync(small())
    slow = tmp_path / "slow"
    answer = call("wait", time_limit=2.5, path=str(slow))
    assert answer["isError"] is True
    assert "2.5 seconds" in answer["error"]
    assert answer["content"] == []
    assert call("echo", text="still there")["isError"] is False
    wait_until((tmp_path / "slow.cancelled").exists, what="the cancel")


@pytest.mark.thorough
def test_a_server_that_dies_is_started_again(sync, call) -> None:
    sync(small())
    answer = call("die")
    assert answer["isError"] is True
    assert "'small'" in answer["error"]
    assert call("echo", text="again")["content"][0]["text"] == "again"


@pytest.mark.thorough
async def test_a_call_at_once_after_the_end_starts_the_server_again(tmp_path: Path) -> None:
    connection = McpConnection(small(), str(tmp_path), asyncio.to_thread, lambda: None)
    try:
        with pytest.raises(McpError, match="'small', tool 'die'"):
            await connection.call("die", {})
        result = await connection.call("echo", {"text": "again"})
    finally:
        await connection.close()
    assert result["content"][0]["text"] == "again"


@pytest.mark.thorough
def test_a_server_may_change_its_tools(runtime, sync, call) -> None:
    changed = asyncio.Event()
    runtime.executor.tools.on_change(changed.set)
    sync(small())
    changed.clear()
    call("grow")

    async def heard() -> None:
        await asyncio.wait_for(changed.wait(), 60)

    runtime.submit(heard()).result(timeout=90)
    assert "grown" in names(runtime)
    assert call("grown")["content"][0]["text"] == "grown"


@pytest.mark.thorough
def test_the_settings_servers_start_when_tools_are_first_asked_for(tmp_path) -> None:
    server = {"name": "small", "command": sys.executable, "args": [SCRIPT]}
    settings = Settings(
        workspace_dir=str(tmp_path), file_store="memory", plugins=(), mcp_servers=(server,)
    )
    before = set(psutil.Process().children(recursive=True))
    runtime = Runtime(settings)
    try:
        assert set(psutil.Process().children(recursive=True)) <= before
        observation = runtime.submit_action(MCPAction("pid", {})).result(timeout=60)
        process = psutil.Process(int(json.loads(observation.content)["content"][0]["text"]))
        assert process.is_running()
    finally:
        runtime.close()
    wait_until(lambda: not process.is_running(), what="the end of the server")
