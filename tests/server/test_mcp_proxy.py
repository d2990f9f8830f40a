"""MCP servers behind a kernel, through every door: ``update_mcp_server``, Actions, MCP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from mcp_client import text_of

pytestmark = pytest.mark.thorough

SCRIPT = str(Path(__file__).parents[1] / "stdio_server.py")
UPDATED = "MCP server updated successfully"


def small(name: str = "small", *more: str) -> dict:
    return {"name": name, "command": sys.executable, "args": [SCRIPT, *more], "env": {}}


async def gone(process: psutil.Process) -> None:
    await asyncio.to_thread(process.wait, 60)


@pytest.mark.thorough
async def test_a_server_appears_beside_our_tools(ask, mcp_connect) -> None:
    heard = asyncio.Event()

    async def listen(message) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with mcp_connect(heard=listen) as over_http, mcp_connect(transport="sse") as over_sse:
        await over_http.call_tool("run", {"command": "true"})
        before = {tool.name for tool in (await over_http.list_tools()).tools}
        heard.clear()
        status, answer = await ask("update_mcp_server", body=[small()])
        assert (status, answer) == (200, {"detail": UPDATED, "router_error_log": ""})
        await asyncio.wait_for(heard.wait(), 60)
        for session in (over_http, over_sse):
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            # One server, so its tools have their own names, but where one is ours.
            assert tools.keys() - before == {
                *("echo", "environment", "pid", "fail", "picture", "wait", "die", "grow"),
                *("unannounced", "small_run"),
            }
            assert tools["echo"].description == "Say the same."
            assert "text" in tools["echo"].input_schema["properties"]
            assert text_of(await session.call_tool("echo", {"text": "x"})) == "x"
            assert text_of(await session.call_tool("small_run", {})) == "the small server's"
            assert text_of(await session.call_tool("run", {"command": "echo ours"})).startswith(
                "ours"
            )
            answer = await session.call_tool("echo", {"text": "x" * 50_000})
            assert text_of(answer) == "x" * 50_000
            assert answer.structured_content == {"result": "x" * 50_000}
            answer = await session.call_tool("unannounced", {})
            assert (text_of(answer), answer.structured_content) == ("the text", None)
            picture = await session.call_tool("picture", {})
            assert picture.content[0].type == "image"
            failed = await session.call_tool("fail", {})
            assert failed.is_error
            assert "it does not work" in text_of(failed)


@pytest.mark.thorough
@pytest.mark.shared_server
async def test_a_second_update_really_updates(ask, mcp_connect, plain_kernel) -> None:
    where = ("kernels", plain_kernel, "update_mcp_server")
    async with mcp_connect(plain_kernel) as session:
        await ask(*where, body=[small("one"), small("two")])
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert {"one_echo", "two_echo"} <= names
        assert "echo" not in names
        process = psutil.Process(int(text_of(await session.call_tool("one_pid", {}))))
        status, answer = await ask(*where, body=[small("bad", "--fail"), small("two")])
        assert (status, answer["detail"]) == (200, UPDATED)
        assert "bad" in answer["router_error_log"]
        await gone(process)
        assert text_of(await session.call_tool("two_echo", {"text": "x"})) == "x"
        assert (await session.call_tool("one_echo", {"text": "x"})).is_error
        await ask(*where, body=[])
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert not [name for name in names if name.endswith("echo")]


BAD_UPDATES = [
    ({"name": "a"}, 400, "Request must be a list of MCP tools to sync"),
    ("x", 400, "Request must be a list of MCP tools to sync"),
    (b"[", 422, "not JSON"),
    (b"", 422, "not JSON"),
    ([{"name": "a b", "command": "x"}], 422, "name must be"),
    ([{"name": "a", "command": "x y"}], 422, "command must be one word"),
    ([{"command": "x"}], 422, "name must be"),
    ([1], 422, "must be an object"),
]


@pytest.mark.thorough
@pytest.mark.shared_server
async def test_a_bad_update_changes_nothing(ask, act) -> None:
    assert (await ask("update_mcp_server", body=[small()]))[0] == 200

    async def pid() -> int:
        _, observation = await act("call_tool_mcp", name="pid", arguments={})
        return int(json.loads(observation["content"])["content"][0]["text"])

    before = await pid()
    for body, status, detail in BAD_UPDATES:
        answered, answer = await ask("update_mcp_server", body=body)
        assert answered == status, body
        assert detail in answer["detail"], body
        assert await pid() == before, body


@pytest.mark.shared_server
async def test_call_tool_mcp_is_an_action(ask, act) -> None:
    await ask("update_mcp_server", body=[small()])
    status, observation = await act("call_tool_mcp", name="echo", arguments={"text": "x"})
    assert status == 200
    assert observation["observation"] == "mcp"
    assert observation["extras"] == {"name": "echo", "arguments": {"text": "x"}}
    content = json.loads(observation["content"])
    assert content.keys() == {"meta", "content", "structuredContent", "isError"}
    assert content["content"][0]["text"] == "x"
    _, observation = await act("call_tool_mcp", name="die", arguments={})
    content = json.loads(observation["content"])
    assert (content["isError"], content["content"]) == (True, [])
    assert content["error"]


async def test_a_wrong_token_starts_nothing(ask, jp_serverapp) -> None:
    wrong = {"headers": {"Authorization": "token wrong"}}
    assert (await ask("update_mcp_server", body=[small()], **wrong))[0] == 403
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


@pytest.mark.parametrize(
    "how",
    ["killed", *(pytest.param(how, marks=pytest.mark.slow) for how in ("restarted", "shut down"))],
)
async def test_a_server_ends_with_its_kernel(
    ask, act, plain_kernel, jp_serverapp, how: str
) -> None:
    await ask("kernels", plain_kernel, "update_mcp_server", body=[small()])
    _, observation = await act("call_tool_mcp", plain_kernel, name="pid", arguments={})
    process = psutil.Process(int(json.loads(observation["content"])["content"][0]["text"]))
    kernels = jp_serverapp.kernel_manager
    if how == "killed":
        _, where = await act("run_ipython", plain_kernel, code="import os; os.getpid()")
        os.kill(int(where["content"].partition("\n")[0]), signal.SIGKILL)
    elif how == "restarted":
        await kernels.restart_kernel(plain_kernel)
    else:
        await kernels.shutdown_kernel(plain_kernel)
    await gone(process)
    if how == "killed":
        # Jupyter cannot end a server while it restarts a kernel.
        async with asyncio.timeout(60):
            while (await act("run", plain_kernel, command="true"))[0] != 200:
                pass


@pytest.mark.thorough
async def test_tools_added_later_are_announced(ask, mcp_connect) -> None:
    heard = asyncio.Queue()

    async def listen(message) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.put_nowait(message)

    async with mcp_connect() as calling, mcp_connect(heard=listen) as watching:
        await ask("update_mcp_server", body=[small()])
        await asyncio.wait_for(heard.get(), 60)
        names = {tool.name for tool in (await watching.list_tools()).tools}
        assert "grown" not in names
        await calling.call_tool("grow", {})
        while "grown" not in names:
            # It is noticed with the next answer of the kernel.
            await calling.call_tool("echo", {"text": "x"})
            await asyncio.wait_for(heard.get(), 60)
            names = {tool.name for tool in (await watching.list_tools()).tools}


@pytest.mark.thorough
async def test_a_restart_is_announced(ask, mcp_connect, plain_kernel, jp_serverapp) -> None:
    heard = asyncio.Event()

    async def listen(message) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with mcp_connect(plain_kernel, heard=listen) as session:
        await ask("kernels", plain_kernel, "update_mcp_server", body=[small()])
        await session.list_tools()
        await asyncio.wait_for(heard.wait(), 60)
        heard.clear()
        await jp_serverapp.kernel_manager.restart_kernel(plain_kernel)
        await session.call_tool("run", {"command": "true"})
        await asyncio.wait_for(heard.wait(), 60)
        assert "echo" not in {tool.name for tool in (await session.list_tools()).tools}


@pytest.mark.server_config(
    OhJupyter={"mcp_servers": [{**small(), "env": {"KEY": "from the configuration"}}]}
)
class TestConfigured:
    """Servers in the configuration of the Jupyter server, for its default kernel."""

    @pytest.mark.thorough
    async def test_they_run_behind_the_default_kernel(self, mcp_connect, jp_serverapp) -> None:
        async with mcp_connect() as session:
            await session.call_tool("run", {"command": "true"})
            assert "echo" in {tool.name for tool in (await session.list_tools()).tools}
            answer = await session.call_tool("environment", {"name": "KEY"})
            assert text_of(answer) == "from the configuration"
            # Where everybody could read them, there are no secrets.
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # it has ended, or is a zombie
                    assert "from the configuration" not in " ".join(process.cmdline())
