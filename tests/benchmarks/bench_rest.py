"""What an Action costs through REST, over what the server's HTTP costs by itself.

Run it with ``python tests/benchmarks/bench_rest.py``. The floor is ``GET alive`` of the
same server, measured in turn with the rest.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import requests

CALLS = 100
LARGE_CALLS = 20
MEGABYTE = "x" * 79 + "\n"


def action(kind: str, **args: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"action": {"action": kind, "args": args}}


class Server:
    """A Jupyter server with the extension, and a session to it."""

    def __init__(self, directory: str) -> None:
        environment = {**os.environ, "FILE_STORE_PATH": f"{directory}/store"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
             "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=t",
             f"--ServerApp.root_dir={directory}"],
            stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if match := re.search(r"(http://127\.0\.0\.1:\d+)/", line):
                self.url = f"{match[1]}/oh_jupyter"
                break
        self.session = requests.Session()
        self.session.headers["Authorization"] = "token t"

    def get(self, path: str) -> Any:
        return self.session.get(f"{self.url}/{path}", timeout=60).json()

    def act(self, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        answer = self.session.post(f"{self.url}/execute_action", data=data, timeout=60)
        answer.raise_for_status()
        return answer.json()


def milliseconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def measure(server: Server, directory: str, cells_too: bool) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile by name, each round taking all in turn."""
    small, large = f"{directory}/small.txt", f"{directory}/large.txt"
    server.act(action("write", path=small, content="one\ntwo\n"))
    server.act(action("write", path=large, content=MEGABYTE * 13107))
    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "GET alive (floor)": (CALLS, lambda: server.get("alive")),
        "run true": (CALLS, lambda: server.act(action("run", command="true"))),
        "read, small": (CALLS, lambda: server.act(action("read", path=small))),
        "write, small": (CALLS, lambda: server.act(action("write", path=small, content="x"))),
        "edit view": (CALLS, lambda: server.act(action("edit", path=small, command="view"))),
        "read, 1 MB": (LARGE_CALLS, lambda: server.act(action("read", path=large))),
        "write, 1 MB": (
            LARGE_CALLS,
            lambda: server.act(action("write", path=large, content=MEGABYTE * 13107)),
        ),
    }
    if cells_too:
        calls["run_ipython 1+1"] = (CALLS, lambda: server.act(action("run_ipython", code="1+1")))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(CALLS):
        for name, (count, call) in calls.items():
            if number < count:
                taken[name].append(milliseconds(call))
    return {
        name: (statistics.median(times), statistics.quantiles(times, n=20)[-1])
        for name, times in taken.items()
    }


def show(title: str, figures: dict[str, tuple[float, float]]) -> None:
    print(f"\n{title:24} {'median ms':>10} {'p95 ms':>8} {'x floor':>8}")
    floor = figures["GET alive (floor)"][0]
    for name, (median, p95) in figures.items():
        print(f"{name:24} {median:10.2f} {p95:8.2f} {median / floor:8.1f}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        begun = time.perf_counter()
        server = Server(directory)
        try:
            server.get("alive")
            first = time.perf_counter() - begun
            server.act(action("run", command="true"))
            print(
                f"server start to first answer {first:.2f} s, to first command in a kernel "
                f"{time.perf_counter() - begun:.2f} s"
            )
            server.act(action("run_ipython", code="import time, threading"))
            show("idle", measure(server, directory, cells_too=True))
            for title, body in (("in time.sleep", "time.sleep(.1)"), ("in a Python loop", "pass")):
                cell = f"end = time.monotonic() + 40\nwhile time.monotonic() < end: {body}"
                data = json.dumps(action("run_ipython", code=cell) | {}).encode()
                waiting = requests.Session()
                waiting.headers["Authorization"] = "token t"
                import threading

                thread = threading.Thread(
                    target=waiting.post,
                    args=(f"{server.url}/execute_action",),
                    kwargs={"data": data, "timeout": 120},
                )
                thread.start()
                show(f"while a cell is {title}", measure(server, directory, cells_too=False))
                thread.join()
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
