"""Time and memory that oh_jupyter adds to the start of a kernel and of a server.

Run it with ``python tests/benchmarks/bench_start.py [ROUNDS]``. With and without take turns, so
that both see the same machine; time is that of the processor as well as that of the clock, since
the first hardly depends on what else runs. What the imports cost tells
``python -X importtime -c "import oh_jupyter.kernel.extension"``.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from jupyter_client.manager import KernelManager

LOAD = "get_ipython().run_line_magic('load_ext', 'oh_jupyter')\n"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")


@dataclass(frozen=True)
class Start:
    """Seconds to the first answer, by the clock and of the processor, and resident bytes."""

    wall: float
    cpu: float
    memory: float


def _used(pid: int) -> tuple[float, float]:
    process = psutil.Process(pid)
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss


def kernel_start(first_lines: str) -> Start:
    """Start a kernel and have it answer one cell."""
    started = time.perf_counter()
    manager = KernelManager(kernel_name="python3")
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "FILE_STORE_PATH": f"{directory}/store", "HOME": directory}
        manager.start_kernel(cwd=directory, env=environment, stderr=subprocess.DEVNULL)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            reply = client.execute(f"{first_lines}1 + 1", reply=True, timeout=60)
            wall = time.perf_counter() - started
            assert reply["content"]["status"] == "ok", reply["content"]
            assert manager.provisioner is not None
            pid = manager.provisioner.pid  # type: ignore[attr-defined]
            return Start(wall, *_used(pid))
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@contextmanager
def server_process(directory: str, enabled: bool) -> Iterator[subprocess.Popen[str]]:
    """Start a Jupyter server with its files in a directory, and end it."""
    environment = {
        **os.environ,
        "HOME": directory,
        "JUPYTER_RUNTIME_DIR": directory,
        "JUPYTER_CONFIG_DIR": f"{directory}/config",
    }
    extensions = f"{{'oh_jupyter': {enabled}, 'jupyterlab': False, 'notebook': False}}"
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--port=0"),
            *("--ServerApp.token=t", "--allow-root", f"--ServerApp.root_dir={directory}"),
            f"--ServerApp.jpserver_extensions={extensions}",
        ],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


def server_start(enabled: bool) -> Start:
    """Start a Jupyter server and wait for the line that has its address."""
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        with server_process(directory, enabled) as server:
            assert server.stderr is not None
            output = []
            for line in server.stderr:
                output.append(line)
                if _ADDRESS.search(line):
                    return Start(time.perf_counter() - started, *_used(server.pid))
            raise RuntimeError(f"the server did not start: {''.join(output)}")


def compare(what: str, rounds: int, bare: Callable[[], Start], ours: Callable[[], Start]) -> None:
    """Measure both in turn, and print medians and their ratio."""
    bare(), ours()  # from here on all files are in the machine's cache
    pairs = [(bare(), ours()) for _ in range(rounds)]
    print(f"\n{what}, median of {rounds}{'bare':>22}{'oh_jupyter':>12}{'ratio':>8}")
    for name, unit, scale in (("wall", "s", 1.0), ("cpu", "s", 1.0), ("memory", "MB", 1e6)):
        before = statistics.median(getattr(pair[0], name) for pair in pairs) / scale
        after = statistics.median(getattr(pair[1], name) for pair in pairs) / scale
        ratios = statistics.median(getattr(b, name) / getattr(a, name) for a, b in pairs)
        print(f"  {name:<12}{unit:<4}{before:>38.2f}{after:>12.2f}{ratios:>8.2f}")


def main() -> None:
    """Print all figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"Python {sys.version.split()[0]} in {Path(sys.prefix).name}, load {os.getloadavg()[0]}")
    compare("kernel", rounds, lambda: kernel_start(""), lambda: kernel_start(LOAD))
    compare("server", rounds, lambda: server_start(False), lambda: server_start(True))


if __name__ == "__main__":
    main()
