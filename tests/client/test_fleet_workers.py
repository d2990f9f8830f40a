"""Fleets on the workers of executors: several servers, lost workers, and a shared store."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_jupyter.client import AsyncRuntimeClient, Fleet, FleetEvent, RuntimeClient
from oh_jupyter.errors import ConfigError, ServerError
from oh_jupyter.storage import LocalFileStore
from oh_jupyter.testing import wait_until

NO_BROWSER = {"OH_JUPYTER_ENABLE_BROWSER": "false", "OH_JUPYTER_CONFIRMATION": "never"}


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def servers() -> list[psutil.Process]:
    workers = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "jupyter_server" in process.cmdline():
                workers.append(process)
        except psutil.Error:
            continue
    return workers


def double(runtime: RuntimeClient, item: int) -> int:
    return int(runtime.run_ipython(f"print({item} * 2)").content.split()[0])


@pytest.mark.thorough
def test_kernels_on_workers(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    """The functions of a fleet work as on a server, and nothing is left running."""
    store = {"FILE_STORE": "local", "FILE_STORE_PATH": str(tmp_path)}
    others = servers()  # of fixtures that other tests share
    with Fleet(executor=pool, size=2, environment=NO_BROWSER | store) as kernels:
        assert len(set(kernels.kernel_ids)) == kernels.size == 2
        results = kernels.map(double, range(6))
        assert [result.value for result in results] == [0, 2, 4, 6, 8, 10]
        assert {result.kernel_id for result in results} <= set(kernels.kernel_ids)
        kernels.map(lambda runtime, n: runtime.store_write(f"made/{n}", b"x"), range(2))
        assert set(servers()) > set(others)
    assert kernels.lost == []
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"0", "1"}
    wait_until(lambda: set(servers()) <= set(others), what="the end of the servers")


@pytest.mark.thorough
def test_events_of_workers(pool: ProcessPoolExecutor) -> None:
    async def scenario() -> list[FleetEvent]:
        async with Fleet(executor=pool, size=2, environment=NO_BROWSER) as kernels:
            events = kernels.events()
            await kernels.map(lambda runtime, item: runtime.run_ipython(item), ["a = 1", "b = 2"])
            return [await anext(events) for _ in range(4)]

    assert len({event.kernel_id for event in asyncio.run(scenario())}) == 2


def test_wrong_descriptions(pool: ProcessPoolExecutor) -> None:
    for options, message in (
        ({}, "give url or executor"),
        ({"url": "http://127.0.0.1:1", "executor": pool}, "give url or executor"),
        ({"executor": 1}, "neither an executor"),
        ({"executor": pool, "attempts": 0}, "at least one attempt"),
        ({"url": "http://127.0.0.1:1", "environment": {"A": "b"}}, "for workers"),
    ):
        with pytest.raises(ConfigError, match=message):
            Fleet(**options)


def test_a_worker_that_cannot_start_a_server(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ServerError, match=r"No worker of the executor can start a server: .*file"),
        Fleet(executor=pool, size=1, path=str(tmp_path / "file" / "x")),
    ):
        pass


async def make(runtime: AsyncRuntimeClient, item: int) -> int:
    """Compute in the kernel, and put the result into the shared store."""
    observation = await runtime.run_ipython(f"import time; time.sleep(0.5); print({item} ** 2)")
    value = int(observation.content.split()[0])
    await runtime.store_write(f"squares/{item}.json", json.dumps(value).encode())
    return value


@pytest.mark.parametrize(
    ("count", "losses"),
    [
        pytest.param(10, 1, id="short", marks=[pytest.mark.thorough, pytest.mark.timeout(300)]),
        pytest.param(200, 8, id="long", marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
def test_workers_come_and_go(count: int, losses: int, tmp_path: Path) -> None:
    """While workers of a LocalCluster are killed and replaced, each item has exactly one result."""
    distributed = pytest.importorskip("distributed")
    store = {"FILE_STORE": "local", "FILE_STORE_PATH": str(tmp_path)}
    random.seed(5)

    async def churn(client: Any, kernels: Any, killed: list[int]) -> None:
        """Kill the worker of a current kernel every few seconds; Dask's nanny starts another."""
        made = tmp_path / "squares"
        await asyncio.to_thread(wait_until, lambda: made.exists() and len(list(made.iterdir())) > 2)
        for _ in range(losses):
            seen = len(kernels.lost)
            pids = await asyncio.to_thread(lambda: list(client.run(os.getpid).values()))
            workers = {int(kernels.member(id).worker.rpartition(":")[2]) for id in
                       kernels.kernel_ids} & set(pids)  # fmt: skip
            if workers:
                killed.append(random.choice(sorted(workers)))
                os.kill(killed[-1], signal.SIGKILL)
                while len(kernels.lost) == seen and not mapping.done():
                    await asyncio.sleep(0.1)
            await asyncio.sleep(random.uniform(1, 4))

    async def scenario(client: Any) -> None:
        nonlocal mapping
        killed: list[int] = []
        options = {"environment": NO_BROWSER | store, "attempts": 10}
        async with Fleet(executor=client, size=2, **options) as kernels:
            mapping = asyncio.ensure_future(kernels.map(make, range(count)))
            churning = asyncio.ensure_future(churn(client, kernels, killed))
            results = await mapping
            churning.cancel()
            await asyncio.gather(churning, return_exceptions=True)
            assert killed
            lost_workers = {lost.worker.rpartition(":")[2] for lost in kernels.lost}
            assert set(map(str, killed)) & lost_workers
            assert any(lost.worker_lost for lost in kernels.lost)
        assert [result.error for result in results] == [None] * count
        assert [result.value for result in results] == [n**2 for n in range(count)]
        assert Counter(result.item for result in results) == Counter(range(count))
        assert any(result.attempts > 1 for result in results)

    mapping: Any = None
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        asyncio.run(scenario(client))
    # A killed worker may leave a temporary file in the directory, which the store hides.
    files = LocalFileStore(str(tmp_path))
    stored = {path: json.loads(files.read(path)) for path in files.list("squares")}
    assert stored == {f"squares/{n}.json": n**2 for n in range(count)}
