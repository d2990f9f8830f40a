"""Fleets on a real server: items, kernels that go, events, and both ways to wait."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import requests

from oh_jupyter.client import AsyncRuntimeClient, Fleet, FleetEvent, RuntimeClient, fleet
from oh_jupyter.client.kernel_starter import KernelStarter, Member
from oh_jupyter.errors import (
    ConfigError,
    KernelDiedError,
    KernelNotFoundError,
    OhJupyterError,
)
from oh_jupyter.events import Event, MessageAction
from oh_jupyter.server.running import server_at
from oh_jupyter.testing import run_server
from oh_jupyter.testing.server import TOKEN

HEADERS = {"Authorization": f"token {TOKEN}"}


def kernels_of(url: str) -> set[str]:
    kernels = requests.get(f"{url}/api/kernels", headers=HEADERS, timeout=60).json()
    return {kernel["id"] for kernel in kernels}


@pytest.mark.thorough
def test_kernels_share_items_and_are_replaced(url: str, tmp_path: Path) -> None:
    """One item kills its kernel the first time, another one loses each kernel that it gets."""
    before, died = kernels_of(url), tmp_path / "died"

    async def work(runtime: AsyncRuntimeClient, item: int | str) -> str:
        if item == "refused":
            raise ValueError("not this one")
        if item == "deadly":
            address = f"{url}/api/kernels/{runtime.kernel_id}"
            await asyncio.to_thread(requests.delete, address, headers=HEADERS, timeout=60)
        if item == "dies once" and not died.exists():
            died.touch()
            await runtime.run_ipython("import os; os.kill(os.getpid(), 9)")
        return (await runtime.run_ipython(f"{item!r} * 2")).content.split("\n")[0]

    async def follow(fleet_events: list[FleetEvent], kernels: object) -> None:
        async for event in kernels.events():
            fleet_events.append(event)

    async def scenario() -> None:
        events: list[FleetEvent] = []
        async with Fleet(url, TOKEN, 2) as kernels:
            following = asyncio.ensure_future(follow(events, kernels))
            first = set(kernels.kernel_ids)
            assert len(first) == kernels.size == 2
            assert first == kernels_of(url) - before
            items = [1, "dies once", "refused", "deadly", *range(4, 8)]
            results = await kernels.map(work, items)
            assert [result.item for result in results] == items
            assert [result.value for result in results[4:]] == ["8", "10", "12", "14"]
            assert (results[0].value, results[0].attempts) == ("2", 1)
            assert (results[1].value, results[1].attempts) == ("'dies oncedies once'", 2)
            assert results[1].kernel_id not in first
            assert (str(results[2].error), results[2].attempts) == ("not this one", 1)
            assert isinstance(results[3].error, KernelDiedError | KernelNotFoundError)
            assert (results[3].value, results[3].attempts) == (None, 2)
            assert not first & set(kernels.kernel_ids)
            used = {result.kernel_id for result in results if result.value}
        await following
        assert {event.kernel_id for event in events} >= used
        for kernel_id in used:
            ids = [event.event.id for event in events if event.kernel_id == kernel_id]
            assert ids == sorted(ids)
        assert kernels_of(url) <= before

    asyncio.run(scenario())


@pytest.mark.thorough
def test_a_kernel_that_died_is_ended_once_its_successor_answers(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jupyter fails to end a kernel that it is restarting, or waits for ever."""
    asked: list[str | None] = []
    ended: dict[str, int] = {}
    generation, end = AsyncRuntimeClient.generation, KernelStarter.end

    async def asking(runtime: AsyncRuntimeClient) -> str:
        try:
            return await generation(runtime)
        finally:
            asked.append(runtime.kernel_id)

    async def ending(starter: KernelStarter, member: Member) -> None:
        ended[member.kernel_id] = asked.count(member.kernel_id)
        await end(starter, member)

    async def dies(runtime: AsyncRuntimeClient, item: str) -> None:
        await runtime.run_ipython("import os; os.kill(os.getpid(), 9)")

    async def scenario() -> None:
        before = kernels_of(url)
        async with Fleet(url, TOKEN, 1) as kernels:
            (first,) = kernels.kernel_ids
            (result,) = await kernels.map(dies, ["deadly"])
        assert isinstance(result.error, KernelDiedError)
        assert set(ended.values()) == {2}, "once when it was started, and once when it had died"
        assert set(ended) == {first, result.kernel_id}
        assert kernels_of(url) <= before

    monkeypatch.setattr(AsyncRuntimeClient, "generation", asking)
    monkeypatch.setattr(KernelStarter, "end", ending)
    asyncio.run(scenario())


def test_events_end_with_the_fleet_whatever_a_server_leaves_open(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream that says nothing is a fake: no real one has been made to do so."""

    async def silent(runtime: AsyncRuntimeClient) -> AsyncGenerator[Event, None]:
        await asyncio.Event().wait()
        yield MessageAction("never")

    async def scenario() -> list[FleetEvent]:
        async with Fleet(url, TOKEN, 1) as kernels:
            events = kernels.events()
            following = asyncio.ensure_future(anext(events, None))
            await kernels.map(lambda runtime, item: asyncio.sleep(0), [1])
        async with asyncio.timeout(60):
            return [event for event in (await following,) if event is not None]

    monkeypatch.setattr(AsyncRuntimeClient, "events", silent)
    monkeypatch.setattr(fleet, "LAST_EVENTS_SECONDS", 0.1)
    assert asyncio.run(scenario()) == []


@pytest.mark.thorough
def test_a_fleet_of_synchronous_clients(url: str) -> None:
    def work(runtime: RuntimeClient, item: int) -> str:
        return runtime.run_ipython(f"{item} + 1").content.split("\n")[0]

    before = kernels_of(url)
    with Fleet(url, TOKEN, 1) as kernels:
        assert [result.value for result in kernels.map(work, range(3))] == ["1", "2", "3"]
        events = kernels.events()
        assert [next(events).event.kind for _ in range(6)] == ["run_ipython"] * 6
        events.close()
        assert kernels.map(work, []) == []
        sessions = requests.get(f"{url}/api/sessions", headers=HEADERS, timeout=60).json()
        (path,) = [session["path"] for session in sessions if session["type"] == "fleet"]
        with pytest.raises(KernelNotFoundError, match="is not open") as refused:
            server_at(url, TOKEN, "none.ipynb")
        assert path not in str(refused.value), "it is no notebook"
    assert kernels_of(url) <= before


def test_a_fleet_that_cannot_start_leaves_nothing(url: str) -> None:
    before = kernels_of(url)
    with pytest.raises(ConfigError, match="at least one"):
        Fleet(url, TOKEN, 0)
    for wrong, error in (
        (
            Fleet(url, "wrong", 2, kernel="python3"),
            r"No kernel \(python3\) can be started: .*token",
        ),
        (Fleet("http://127.0.0.1:1", TOKEN, 2), "cannot be reached"),
    ):
        with pytest.raises(OhJupyterError, match=error), wrong:
            pytest.fail("it has started")
    assert kernels_of(url) <= before


# A kernel whose ports were taken at its first start; later kernels start as usual.
TAKEN = """
import json, pathlib, runpy, socket, sys
path = pathlib.Path(sys.argv.pop(1))
path.write_text(path.read_text() + "x")
if path.read_text() == "x":
    taken = socket.create_server(("127.0.0.1", json.load(open(sys.argv[2]))["shell_port"]))
runpy.run_module("ipykernel_launcher", run_name="__main__")
"""


@pytest.mark.thorough
def test_another_kernel_is_started_if_the_ports_of_one_were_taken(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    starts.touch()
    spec = tmp_path / "share" / "kernels" / "taken" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-c", TAKEN, str(starts), "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "Taken", "language": "python"}))
    environment = {"JUPYTER_PATH": str(tmp_path / "share")}
    with run_server(tmp_path, environment=environment) as server:

        async def scenario() -> set[str]:
            async with Fleet(server.url, TOKEN, 1, kernel="taken") as kernels:
                (result,) = await kernels.map(
                    lambda runtime, item: runtime.run_ipython(item), ["1 + 1"]
                )
                assert result.value is not None
                assert result.value.content.startswith("2")
                assert (result.attempts, kernels.lost) == (1, [])
                return kernels_of(server.url) ^ set(kernels.kernel_ids)

        assert asyncio.run(scenario()) == set()
        assert starts.read_text() > "x"
        assert kernels_of(server.url) == set()


@pytest.mark.thorough
def test_a_notebook_finds_its_server(url: str) -> None:
    code = """
with oh.fleet(1) as kernels:
    def work(runtime, item):
        return runtime.run_ipython(f"{item} + 1").content.split()[0]
    print([result.value for result in kernels.map(work, [41])])
"""
    with RuntimeClient(url, TOKEN) as client:
        assert client.run_ipython(code).content.startswith("['42']")
