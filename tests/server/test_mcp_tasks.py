"""Tool calls as MCP Tasks: with major 2 the extension, with major 1 those of 2025-11-25."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_client import MAJOR, McpError
from mcp_tasks import TaskClient, task_client

from oh_jupyter.operations.actions import Confirm
from oh_jupyter.server.state import state_of

pytestmark = [pytest.mark.thorough, pytest.mark.shared_server]


async def status_is(client: TaskClient, id: str, status: str, message: str = "") -> dict[str, Any]:
    """Wait for a status and its message."""
    async with asyncio.timeout(60):
        while True:
            task = await client.task(id)
            if task["status"] == status and message in task.get("statusMessage", ""):
                return task
            await asyncio.sleep(0.05)


def waiting_cell(go: Path) -> str:
    path = str(go)
    return (
        "import pathlib, time\nprint('it waits')\n"
        f"while not pathlib.Path({path!r}).exists(): time.sleep(0.05)\nprint('it is done')"
    )


@pytest.mark.thorough
async def test_a_task_survives_the_death_of_its_client(
    mcp_url, jp_auth_header, plain_kernel, tmp_path
) -> None:
    url, go = f"{mcp_url}/kernels/{plain_kernel}/mcp", tmp_path / "go"
    arguments = json.dumps({"code": waiting_cell(go)})
    program = [sys.executable, str(Path(__file__).parent / "mcp_tasks.py")]
    with subprocess.Popen(
        [*program, url, json.dumps(jp_auth_header), "run_ipython", arguments],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            id = json.loads(await asyncio.to_thread(process.stdout.readline))["taskId"]
        finally:
            process.kill()
    async with task_client(url, jp_auth_header) as client:
        task = await status_is(client, id, "working", "it waits")
        assert task["pollInterval" if MAJOR == 1 else "pollIntervalMs"] > 0
        go.touch()
        result = await client.result(id)
        assert result["content"][0]["text"].startswith("it waits\nit is done")
        task = await status_is(client, id, "completed")
        assert task["ttl" if MAJOR == 1 else "ttlMs"] > 0
        with pytest.raises(McpError, match="no request 'nonsense'"):
            await client.task("nonsense")


async def test_a_task_that_is_cancelled_is_interrupted(
    mcp_url, jp_auth_header, plain_kernel, mcp_connect
) -> None:
    url = f"{mcp_url}/kernels/{plain_kernel}/mcp"
    async with task_client(url, jp_auth_header) as client:
        code = "print('it sleeps', flush=True); __import__('time').sleep(600)"
        id = (await client.begin("run_ipython", {"code": code}))["taskId"]
        await status_is(client, id, "working", "it sleeps")
        await client.cancel(id)
        await status_is(client, id, "cancelled")
    async with mcp_connect(plain_kernel) as session:
        answer = await session.call_tool("run_ipython", {"code": "'free again'"})
        assert "free again" in answer.content[0].text


@pytest.mark.thorough
async def test_a_command_outlives_a_client_that_knows_no_tasks(
    mcp_connect, plain_kernel, tmp_path
) -> None:
    go = tmp_path / "go"
    wait = f"until [ -e {go} ]; do sleep 0.05; done; echo it is over"
    async with mcp_connect(plain_kernel) as session:
        answer = await session.call_tool("run", {"command": wait, "timeout": 0.5})
        assert "exit code" not in answer.content[0].text
    async with mcp_connect(plain_kernel) as session:
        go.touch()
        answer = await session.call_tool("run", {"command": ""})
        assert answer.content[0].text.startswith("it is over"), answer.content[0].text
        events = await session.call_tool("events")
        assert "it is over" in events.content[0].text


@pytest.mark.skipif(MAJOR == 1, reason="sessions say it once, when they begin")
async def test_tasks_require_the_declared_capability(mcp_url, jp_auth_header) -> None:
    async with task_client(f"{mcp_url}/mcp", jp_auth_header, declared=False) as client:
        with pytest.raises(McpError, match="has not declared"):
            await client.task("any")


@pytest.mark.server_config(OhJupyter={"confirmation": "always"})
class TestConfirmation:
    @pytest.mark.thorough
    async def test_a_task_that_waits_for_a_person_reports_it(
        self, mcp_url, jp_auth_header, ask, plain_kernel, jp_serverapp
    ) -> None:
        async with task_client(f"{mcp_url}/kernels/{plain_kernel}/mcp", jp_auth_header) as client:
            id = (await client.begin("run_ipython", {"code": "40 + 2"}))["taskId"]
            await status_is(client, id, "input_required", "a person")
            _, waiting = await ask("kernels", plain_kernel, "confirmations")
            link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
            await link.request(Confirm(waiting[0]["id"], True))
            assert "42" in (await client.result(id))["content"][0]["text"]

    async def test_progress_reports_an_action_that_waits_for_a_person(
        self, mcp_connect, ask, plain_kernel, jp_serverapp
    ) -> None:
        waits = asyncio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if message == "waiting for a person's approval in JupyterLab (write /etc/x)":
                waits.set()

        async with mcp_connect(plain_kernel) as session:
            arguments = {"path": "/etc/x", "content": "y"}
            call = asyncio.ensure_future(session.call_tool("write", arguments, progress))
            await asyncio.wait_for(waits.wait(), 60)
            _, waiting = await ask("kernels", plain_kernel, "confirmations")
            link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
            await link.request(Confirm(waiting[0]["id"], False))
            assert "rejected" in (await call).content[0].text.lower()
