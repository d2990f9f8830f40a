"""Cost of an Action through REST, over the cost of the server's HTTP.

Run it with ``python tests/benchmarks/bench_rest.py``. The floors are ``GET alive`` of the same
server; for a megabyte, an address of the same server that has a kernel send back what it gets;
for a cell, Jupyter's own client at a kernel without the extension. All are measured in turn with
the rest. The floor of the start is the same server without the extension.
Memory is the proportional set size of the server, its kernel and everything below.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import requests
from jupyter_client.manager import start_new_kernel
from requests.adapters import HTTPAdapter
from urllib3 import Retry

CALLS = 100
LARGE_CALLS = 30
STARTS = 3
MEGABYTE = ("x" * 79 + "\n") * 13107

ECHO = """
from jupyter_server.base.handlers import APIHandler
from dataclasses import dataclass
from tornado import web
from oh_jupyter.operations import Operation
from oh_jupyter.server.state import state_of

@dataclass(frozen=True)
class EchoBody(Operation[str], scope="anyone"):
    pass

class Echo(APIHandler):
    @web.authenticated
    async def post(self):
        self.set_header("Content-Type", "application/json")
        self.finish(self.request.body)

class KernelEcho(APIHandler):
    @web.authenticated
    async def post(self):
        link = await state_of(self.settings).router.default()
        reply = await link.request(EchoBody(), self.request.body)
        self.set_header("Content-Type", "application/json")
        self.finish(reply.body)

def _load_jupyter_server_extension(server):
    server.web_app.add_handlers(".*", [("/echo", Echo), ("/kernel_echo", KernelEcho)])
"""
"""An extension of the server that does nothing but HTTP with a body, there and to the kernel."""

ECHO_OPERATION = """
from dataclasses import dataclass
from oh_jupyter.kernel.control.rpc import handles
from oh_jupyter.control_messages import Reply
from oh_jupyter.operations import Operation

@dataclass(frozen=True)
class EchoBody(Operation[str], scope="anyone"):
    pass

@handles(EchoBody)
async def echo(request, op):
    return Reply(body=request.buffers[0])
"""
"""What makes a kernel send back what it gets."""


def action(kind: str, **args: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"action": {"action": kind, "args": args}}


class Server:
    """A Jupyter server with the extension, and a session to it."""

    def __init__(self, directory: str, ours: bool = True, options: Sequence[str] = ()) -> None:
        Path(directory, "bench_echo.py").write_text(ECHO)
        environment = {
            **os.environ, "FILE_STORE_PATH": f"{directory}/store",
            "PYTHONPATH": f"{directory}:{os.environ.get('PYTHONPATH', '')}",
        }  # fmt: skip
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
             f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=t",
             f"--ServerApp.jpserver_extensions={{'oh_jupyter': {ours}, 'bench_echo': True}}",
             f"--ServerApp.root_dir={directory}", *options],
            stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/oh_jupyter"
        self.session = requests.Session()
        self.session.headers["Authorization"] = "token t"
        patience = Retry(total=1000, read=0, backoff_factor=0.02, backoff_max=0.05)
        self.session.mount("http://", HTTPAdapter(max_retries=patience))

    def get(self, path: str) -> Any:
        return self.session.get(f"{self.url}/{path}", timeout=60).json()

    def post(self, url: str, body: dict[str, Any]) -> Any:
        answer = self.session.post(url, data=json.dumps(body).encode(), timeout=60)
        answer.raise_for_status()
        return answer.json()

    def act(self, body: dict[str, Any]) -> Any:
        return self.post(f"{self.url}/execute_action", body)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def memory(self) -> float:
        """Megabytes of the server and all that it has started."""
        server = psutil.Process(self.process.pid)
        processes = [server, *server.children(recursive=True)]
        return sum(process.memory_full_info().pss for process in processes) / 1e6


def milliseconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def starts(directory: str) -> tuple[float, float]:
    """Seconds from nothing to the first answer, without the extension and with it."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(STARTS):
        for ours in (False, True):
            begun = time.perf_counter()
            server = Server(directory, ours)
            try:
                server.get("alive" if ours else "../api/status")
                taken[ours].append(time.perf_counter() - begun)
            finally:
                server.stop()
    return statistics.median(taken[False]), statistics.median(taken[True])


class BareKernel:
    """A kernel without the extension, and Jupyter's own client of it."""

    def __init__(self) -> None:
        self.manager, self.client = start_new_kernel()

    def cell(self) -> None:
        """Run a cell until its reply and all of its outputs are there."""
        self.client.execute_interactive("1+1", output_hook=lambda message: None, timeout=60)

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def measure(
    server: Server, directory: str, bare: BareKernel | None
) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile by name, all in turn; cells where one can run."""
    small, large = f"{directory}/small.txt", f"{directory}/large.txt"
    server.act(action("write", path=small, content="one\ntwo\n"))
    server.act(action("write", path=large, content=MEGABYTE))
    echoed = {"content": MEGABYTE}
    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "GET alive (floor)": (CALLS, lambda: server.get("alive")),
        "run true": (CALLS, lambda: server.act(action("run", command="true"))),
        "read, small": (CALLS, lambda: server.act(action("read", path=small))),
        "write, small": (CALLS, lambda: server.act(action("write", path=small, content="x"))),
        "edit view": (CALLS, lambda: server.act(action("edit", path=small, command="view"))),
        "echo, 1 MB (floor)": (LARGE_CALLS, lambda: server.post(f"{server.root}/echo", echoed)),
        "to kernel, 1 MB (floor)": (
            LARGE_CALLS,
            lambda: server.post(f"{server.root}/kernel_echo", echoed),
        ),
        "read, 1 MB": (LARGE_CALLS, lambda: server.act(action("read", path=large))),
        "write, 1 MB": (
            LARGE_CALLS,
            lambda: server.act(action("write", path=large, content=MEGABYTE)),
        ),
    }
    calls["edit, small"] = (CALLS, edit(server, f"{directory}/edited.txt", ""))
    calls["edit, 1 MB"] = (LARGE_CALLS, edit(server, f"{directory}/long.txt", MEGABYTE))
    calls["run cat, 1 MB"] = (
        LARGE_CALLS,
        lambda: server.act(action("run", command=f"cat {large}")),
    )
    if bare is not None:
        calls["bare 1+1 (floor)"] = (CALLS, bare.cell)
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


def edit(server: Server, path: str, content: str) -> Callable[[], None]:
    """Return a call that replaces a word at the beginning of a file."""
    words = ["first", "other"]
    server.act(action("write", path=path, content=f"first\n{content}"))

    def edit() -> None:
        old, new = words
        words.reverse()
        server.act(action("edit", path=path, command="str_replace", old_str=old, new_str=new))

    return edit


def sandboxed(directory: str, plain: dict[str, tuple[float, float]]) -> None:
    """Measure with a sandbox that asks, and print how much slower that is."""
    options = ("--OhJupyter.sandbox=required", "--OhJupyter.confirmation=risky")
    server = Server(directory, options=options)
    try:
        server.act(action("run", command="true"))
        server.act(action("run_ipython", code=ECHO_OPERATION))
        boxed = measure(server, directory, None)
    finally:
        server.stop()
    show("with a sandbox", boxed)
    for name in ("edit, small", "edit, 1 MB", "read, small", "write, small"):
        print(f"{name} with a sandbox: {boxed[name][0] / plain[name][0]:.2f} times without")


def show(title: str, figures: dict[str, tuple[float, float]]) -> None:
    print(f"\n{title:24} {'median ms':>10} {'p95 ms':>8} {'x floor':>8}")
    for name, (median, p95) in figures.items():
        large = "to kernel, 1 MB (floor)" if "1 MB" in name else "GET alive (floor)"
        floor = figures["bare 1+1 (floor)" if "1+1" in name else large][0]
        print(f"{name:24} {median:10.2f} {p95:8.2f} {median / floor:8.1f}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        floor, first = starts(directory)
        begun = time.perf_counter()
        server = Server(directory)
        try:
            server.act(action("run", command="true"))
            print(
                f"server start to first answer {first:.2f} s, {first / floor:.2f} times the "
                f"bare server's; to first command in a kernel {time.perf_counter() - begun:.2f} s"
            )
            server.act(action("run_ipython", code="import time, threading" + ECHO_OPERATION))
            print(f"server, kernel and shell use {server.memory():.0f} MB")
            bare = BareKernel()
            try:
                idle = measure(server, directory, bare)
            finally:
                bare.stop()
            show("idle", idle)
            sandboxed(directory, idle)
            for title, body in (("in time.sleep", "time.sleep(.1)"), ("in a Python loop", "pass")):
                cell = f"end = time.monotonic() + 40\nwhile time.monotonic() < end: {body}"
                data = json.dumps(action("run_ipython", code=cell) | {}).encode()
                waiting = requests.Session()
                waiting.headers["Authorization"] = "token t"
                thread = threading.Thread(
                    target=waiting.post,
                    args=(f"{server.url}/execute_action",),
                    kwargs={"data": data, "timeout": 120},
                )
                thread.start()
                show(f"while a cell is {title}", measure(server, directory, None))
                thread.join()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
