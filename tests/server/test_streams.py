"""Events as a stream, requests that outlive their connection, and those that do not."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from leaving_client import asked
from waiting import until

from oh_jupyter.server.handlers import events
from oh_jupyter.server.links.kernel_link import clock_offsets


class Stream:
    """Reads server-sent events as they come."""

    def __init__(self) -> None:
        self.text = ""
        self.news = asyncio.Event()

    def feed(self, chunk: bytes) -> None:
        self.text += chunk.decode()
        self.news.set()

    @property
    def events(self) -> list[dict[str, Any]]:
        blocks = [block for block in self.text.split("\n\n")[:-1] if not block.startswith(":")]
        received = []
        for block in blocks:
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            received.append({**lines, "data": json.loads(lines["data"])})
        return received

    async def until(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            while len(self.events) < count:
                self.news.clear()
                await self.news.wait()
        return self.events


@pytest.fixture
def watch(jp_fetch: Any) -> Any:
    tasks = []

    def watch(*where: str, headers: Any = None, **params: str) -> tuple[Stream, Any]:
        stream = Stream()
        task = asyncio.ensure_future(
            jp_fetch(
                "oh_jupyter",
                *where,
                "events",
                params=params,
                headers={"Accept": "text/event-stream", **(headers or {})},
                streaming_callback=stream.feed,
                request_timeout=90,
            )
        )
        tasks.append(task)
        return stream, task

    yield watch
    for task in tasks:
        task.cancel()


async def test_events_are_streamed_and_resumed(act: Any, watch: Any) -> None:
    await act("run", command="echo first")
    stream, _ = watch()
    recorded = await stream.until(3)
    assert [event["event"] for event in recorded] == ["generation", "action", "observation"]
    generation = recorded[0]["data"]["generation"]
    assert [event.get("id") for event in recorded] == [None, f"{generation}:0", f"{generation}:1"]
    await act("run", command="echo second")
    live = await stream.until(5)
    assert live[4]["data"]["content"] == "second"
    resumed, _ = watch(headers={"Last-Event-ID": f"{generation}:2"})
    assert [e.get("id") for e in await resumed.until(2)] == [None, f"{generation}:3"]
    anew, _ = watch(headers={"Last-Event-ID": "older:2"})
    assert len(await anew.until(5)) == 5
    late, _ = watch(start_id="3")
    assert (await late.until(2))[1]["id"] == f"{generation}:3"


@pytest.mark.thorough
async def test_long_events_are_whole_on_request(act: Any, watch: Any) -> None:
    await act("run", command="printf '%05000d' 7")
    clipped, _ = watch()
    whole, _ = watch(whole="true")
    assert len((await clipped.until(3))[2]["data"]["content"]) == 4000
    assert len((await whole.until(3))[2]["data"]["content"]) == 5000


@pytest.mark.thorough
async def test_a_stream_ends_with_its_kernel(
    watch: Any, act: Any, plain_kernel: str, jp_serverapp: Any
) -> None:
    await act("run", plain_kernel, command="true")
    stream, task = watch("kernels", plain_kernel)
    await stream.until(3)
    await jp_serverapp.kernel_manager.shutdown_kernel(plain_kernel)
    assert (await stream.until(4))[3]["event"] == "gone"
    await task


@pytest.mark.thorough
async def test_a_stream_ends_with_a_kernel_that_jupyter_has_forgotten(
    watch: Any, act: Any, plain_kernel: str, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does, with no event, where the restart of a kernel has failed."""
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.1)
    kernels = jp_serverapp.kernel_manager
    await act("run", plain_kernel, command="true")
    stream, task = watch("kernels", plain_kernel)
    await stream.until(3)
    forgotten = kernels.remove_kernel(plain_kernel)
    try:
        assert (await stream.until(4))[3]["event"] == "gone"
        await task
    finally:
        kernels._kernels[plain_kernel] = forgotten  # so that it is ended


@pytest.mark.thorough
async def test_a_stream_does_not_load_the_extension(ask: Any, plain_kernel: str) -> None:
    headers = {"Accept": "text/event-stream"}
    assert (await ask("kernels", plain_kernel, "events", headers=headers))[0] == 424


@pytest.mark.thorough
async def test_an_answer_can_be_fetched_later(ask: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    args = {"command": f"cat '{gate}'", "blocking": True}
    body = {"action": {"action": "run", "args": args}}
    gone = asyncio.ensure_future(
        ask("execute_action", body=body, headers={"X-Request-ID": "mine-1"})
    )
    status = 404
    while status == 404:
        status, answer = await ask("requests", "mine-1")
    assert (status, answer) == (202, {"status": "running"})
    gone.cancel()
    await asyncio.to_thread(gate.write_text, "done")
    status, answer = await ask("requests", "mine-1", params={"wait": "60"})
    assert (status, answer["content"]) == (200, "done")
    again = await ask("execute_action", body=body, headers={"X-Request-ID": "mine-1"})
    assert again == (200, answer)
    assert (await ask("requests", "other"))[0] == 404
    assert (await ask("requests", "mine-1", params={"wait": "long"}))[0] == 422
    refused = await ask("execute_action", body=body, headers={"X-Request-ID": "no id"})
    assert refused[0] == 422


SLEEPER = {"action": {"action": "run_ipython", "args": {"code": "import time; time.sleep(300)"}}}


@pytest.mark.thorough
async def test_a_request_can_be_cancelled(ask: Any, act: Any) -> None:
    waiting = asyncio.ensure_future(
        ask("execute_action", body=SLEEPER, headers={"X-Request-ID": "long"})
    )
    while (await ask("requests", "long"))[0] == 404:
        pass
    await _cell_runs(ask)
    status, _ = await _delete(ask, "long")
    assert status == 204
    assert (await waiting)[0] == 410
    assert (await act("run_ipython", code="1+1"))[1]["content"].startswith("2")


@pytest.mark.thorough
async def test_a_client_that_goes_away_takes_its_cell_along(
    ask: Any, act: Any, mcp_url: str, jp_auth_header: Any
) -> None:
    await act("run", command="true")
    leaving = await asyncio.to_thread(asked, mcp_url, jp_auth_header, SLEEPER["action"])
    await _cell_runs(ask)
    leaving.close()
    async with asyncio.timeout(60):
        status, answer = await act("run_ipython", code="1+1")
    assert (status, answer["content"].split("\n")[0]) == (200, "2")


async def _cell_runs(ask: Any) -> None:
    async with asyncio.timeout(60):
        while not ((await ask("server_info"))[1]["runtime"] or {}).get("running"):
            pass


async def _delete(ask: Any, key: str) -> Any:
    try:
        return await ask("requests", key, method="DELETE")
    except json.JSONDecodeError:
        return 204, None


def test_the_lead_of_a_kernels_clock() -> None:
    """On one machine there is none, however long the reply waited."""
    assert clock_offsets(10.0, 10.1, 12.0) == (0.0, 0.0)
    assert clock_offsets(10.0, 500.0, 12.0) == (488.0, 490.0)
    assert clock_offsets(10.0, 9.0, 12.0) == (-3.0, -1.0)


@pytest.mark.thorough
async def test_an_interrupt_over_jupyters_own_address_stops_command_and_cell(
    act: Any, jp_fetch: Any, plain_kernel: str, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    interrupt = ("api", "kernels", plain_kernel, "interrupt")
    await act("run", plain_kernel, command="true")

    async def interrupted(kind: str, **args: Any) -> Any:
        waiting = asyncio.ensure_future(act(kind, plain_kernel, **args))
        await until(started.exists)
        async with asyncio.timeout(60):
            await jp_fetch(*interrupt, method="POST", body=b"")
            started.unlink()
            return (await waiting)[1]

    # Bash itself forgets an interrupt that comes while it starts a program.
    command = f"bash -c ': >{started}; exec sleep 1000'"
    ended = await interrupted("run", command=command, blocking=True)
    assert ended["extras"]["metadata"]["exit_code"] == 130
    code = f"open({str(started)!r}, 'w').close(); import time; time.sleep(1000)"
    assert "KeyboardInterrupt" in (await interrupted("run_ipython", code=code))["content"]
    assert (await act("run", plain_kernel, command="echo works"))[1]["content"] == "works"
