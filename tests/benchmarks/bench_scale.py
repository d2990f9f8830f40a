"""Many kernels and many clients on one server: memory and latency, and what idle ones cost.

Run it with ``python tests/benchmarks/bench_scale.py [KERNELS] [CLIENTS]``. It prints a table, and
the parameters that ``model_scale.py`` computes with, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from oh_jupyter.client import AsyncRuntimeClient, Fleet
from oh_jupyter.testing import LiveServer, run_server

KERNELS = 50
CLIENTS = 200
ACTIONS_PER_CLIENT = 10
IDLE_SECONDS = 20.0


def processes(server: LiveServer) -> tuple[psutil.Process, list[psutil.Process]]:
    """The server's process, and those of its kernels with all their children."""
    own = psutil.Process(server.pid)
    return own, own.children(recursive=True)


def private_mib(listed: list[psutil.Process]) -> float:
    """Memory that the processes do not share, in MiB."""
    return sum(process.memory_full_info().uss for process in listed) / 2**20


def cpu_seconds(listed: list[psutil.Process]) -> float:
    """CPU time that the processes have used."""
    return sum(sum(process.cpu_times()[:2]) for process in listed)


async def latencies_ms(runtimes: list[AsyncRuntimeClient]) -> list[float]:
    """Return the duration of each action, with all clients at once."""
    durations: list[float] = []

    async def work(runtime: AsyncRuntimeClient) -> None:
        for _ in range(ACTIONS_PER_CLIENT):
            started = time.perf_counter()
            await runtime.read("/etc/hostname")
            durations.append(1000 * (time.perf_counter() - started))

    await asyncio.gather(*(work(runtime) for runtime in runtimes))
    return durations


def stored_bytes(server: LiveServer) -> tuple[int, int]:
    """Events in the store, and their bytes."""
    files = list((server.directory / "store").rglob("events/*.json"))
    return len(files), sum(file.stat().st_size for file in files)


async def measure(server: LiveServer, kernels_wanted: int, clients: int) -> dict[str, float]:
    """All figures of one server."""
    own, _ = processes(server)
    bare_mib = private_mib([own])
    started = time.perf_counter()
    async with Fleet(server.url, server.token, kernels_wanted) as kernels:
        ids = kernels.kernel_ids
        start_seconds = time.perf_counter() - started
        own, children = processes(server)
        memory = private_mib(children) / kernels_wanted
        before = cpu_seconds([own]), cpu_seconds(children)
        await asyncio.sleep(IDLE_SECONDS)  # the time is what is measured
        after = cpu_seconds([own]), cpu_seconds(children)
        rows = {}
        async with AsyncExitStack() as opened:
            runtimes = [
                await opened.enter_async_context(
                    AsyncRuntimeClient(server.url, server.token, ids[number % len(ids)])
                )
                for number in range(clients)
            ]
            for number in sorted({1, 10, 50, clients}):
                events = stored_bytes(server)
                cpu = cpu_seconds([own]), cpu_seconds(children)
                started = time.perf_counter()
                durations = await latencies_ms(runtimes[:number])
                rate = len(durations) / (time.perf_counter() - started)
                used = cpu_seconds([own]) - cpu[0], cpu_seconds(children) - cpu[1]
                rows[number] = durations, rate, used
        written = await settled(server, events)
        print(f"{kernels_wanted} kernels started in {start_seconds:.0f} s")
        print("| clients | median ms | 95 % ms | actions a second |\n| --- | --- | --- | --- |")
        for number, (durations, rate, _) in rows.items():
            high = statistics.quantiles(durations, n=20)[-1]
            print(f"| {number} | {statistics.median(durations):.0f} | {high:.0f} | {rate:.0f} |")
        durations, rate, cpu = rows[clients]
        return {
            "kernels": kernels_wanted,
            "clients": clients,
            "load_average": os.getloadavg()[0],
            "server_mib": round(private_mib([own])),
            "server_mib_without_kernels": round(bare_mib),
            "kernel_mib": round(memory),
            "kernel_start_seconds": round(start_seconds / kernels_wanted, 2),
            "idle_server_cpu_percent": round(100 * (after[0] - before[0]) / IDLE_SECONDS, 2),
            "idle_kernel_cpu_percent": round(
                100 * (after[1] - before[1]) / IDLE_SECONDS / kernels_wanted, 3
            ),
            "actions_per_second": round(rate),
            "server_cpu_ms_per_action": round(1000 * cpu[0] / len(durations), 2),
            "kernel_cpu_ms_per_action": round(1000 * cpu[1] / len(durations), 2),
            "bytes_per_event": round(written),
        }


async def settled(server: LiveServer, before: tuple[int, int]) -> float:
    """Mean bytes of the events since then, when all of them are written."""
    seen = before
    while (now := stored_bytes(server)) != seen or now == before:
        seen = now
        await asyncio.sleep(0.5)
    return (now[1] - before[1]) / (now[0] - before[0])


def main(kernels: int, clients: int) -> None:
    options = ("--OhJupyter.enable_browser=False", "--OhJupyter.max_queued_actions=1000")
    with (
        tempfile.TemporaryDirectory() as directory,
        run_server(Path(directory), *options) as server,
    ):
        print(json.dumps(asyncio.run(measure(server, kernels, clients)), indent=2))


if __name__ == "__main__":
    numbers = [int(value) for value in sys.argv[1:]]
    main(*numbers, *(KERNELS, CLIENTS)[len(numbers) :])
