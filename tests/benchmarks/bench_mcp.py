"""Time until a new Jupyter server answers an agent: ``initialize`` over MCP.

Run it with ``python tests/benchmarks/bench_mcp.py [ROUNDS]``. Each server gets its request as soon
as it listens, one server ``/api``, the next ``initialize``; a later ``initialize``
follows. The processor's seconds are those of the server during the request.
"""

from __future__ import annotations

import json
import re
import socket
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from bench_start import server_process

_ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
HEADERS = {
    "Authorization": "token t",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True)
class Cost:
    """Seconds of one request, by the clock and of the server's processor."""

    wall: float
    cpu: float


@contextmanager
def started_server() -> Iterator[tuple[psutil.Process, str]]:
    """Start a server; yield it with its address as soon as it takes connections."""
    with tempfile.TemporaryDirectory() as directory, server_process(directory, True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if match := _ADDRESS.search(line):
                _wait_for(match[1])
                yield psutil.Process(server.pid), match[1]
                return
        raise RuntimeError("the server did not start")


def _wait_for(address: str) -> None:
    """Wait until a server listens, which it does somewhat after it prints its address."""
    parts = urllib.parse.urlsplit(address)
    while True:
        try:
            socket.create_connection((parts.hostname, parts.port)).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return


def _cost(server: psutil.Process, request: urllib.request.Request) -> Cost:
    def cpu() -> float:
        times = server.cpu_times()
        return times.user + times.system

    used, began = cpu(), time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as response:
        body = response.read()
    wall = time.perf_counter() - began
    assert b"serverInfo" in body or b"version" in body, body
    return Cost(wall, cpu() - used)


def api_cost() -> Cost:
    """Return the cost of the first request to a server, which is of Jupyter's own API."""
    with started_server() as (server, address):
        return _cost(server, urllib.request.Request(f"{address}/api", headers=HEADERS))


def initialize_costs() -> tuple[Cost, Cost]:
    """Return the cost of the first ``initialize`` of a server, and of a later one."""
    with started_server() as (server, address):
        url, data = f"{address}/oh_jupyter/mcp", json.dumps(INITIALIZE).encode()
        requests = [urllib.request.Request(url, data, HEADERS) for _ in range(2)]
        first, later = (_cost(server, request) for request in requests)
        return first, later


def main() -> None:
    """Print all figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows: dict[str, list[Cost]] = {"first /api": [], "first initialize": [], "later initialize": []}
    for _ in range(rounds):
        first, later = initialize_costs()
        for name, cost in zip(rows, (api_cost(), first, later), strict=True):
            rows[name].append(cost)
    print(f"{'median of ' + str(rounds):<20}{'wall':>8}{'cpu':>8} s")
    for name, costs in rows.items():
        wall, cpu = (
            statistics.median(getattr(cost, of) for cost in costs) for of in ("wall", "cpu")
        )
        print(f"{name:<20}{wall:>8.3f}{cpu:>8.3f}")


if __name__ == "__main__":
    main()
