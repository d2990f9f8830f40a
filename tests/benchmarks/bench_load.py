"""Cost of oh_jupyter in a kernel, beside the kernel's own cost.

Run it with ``python tests/benchmarks/bench_load.py``. Each round starts two fresh kernels, one
without and one with ``--ext oh_jupyter``, and asks both for ``1 + 1``; in the one without,
``%load_ext oh_jupyter`` is then measured by itself.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from typing import NamedTuple

import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROUNDS = 7

LOAD = """
import gc, json, os, time
def _resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
_before = _resident()
_begun = time.perf_counter()
get_ipython().run_line_magic("load_ext", "oh_jupyter")
_seconds = time.perf_counter() - _begun
print(json.dumps([_seconds, _resident() - _before]))
"""


class Cost(NamedTuple):
    """Seconds and resident bytes."""

    seconds: float
    memory_bytes: float


def output(client: BlockingKernelClient, code: str) -> str:
    """Return the output or result of a cell."""
    texts: list[str] = []

    def collect(message: dict[str, dict[str, dict[str, str]]]) -> None:
        content = message["content"]
        texts.append(str(content.get("text") or content.get("data", {}).get("text/plain", "")))

    client.execute_interactive(code, output_hook=collect, timeout=60)
    return "".join(texts)


def kernel_costs(*arguments: str) -> tuple[Cost, Cost | None]:
    """From start to the first answer; and of loading, in a kernel that was started without."""
    started = time.perf_counter()
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(extra_arguments=list(arguments))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        assert output(client, "1 + 1") == "2"
        seconds = time.perf_counter() - started
        memory_bytes = psutil.Process(manager.provisioner.pid).memory_info().rss
        load = None if arguments else Cost(*json.loads(output(client, LOAD)))
        return Cost(seconds, memory_bytes), load
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def main() -> None:
    """Measure and print."""
    bare, loading, with_extension = [], [], []
    with tempfile.TemporaryDirectory() as store:
        os.environ["FILE_STORE_PATH"] = store
        for _ in range(ROUNDS):
            alone, load = kernel_costs()
            bare.append(alone)
            loading += [load] if load is not None else []
            with_extension.append(kernel_costs("--ext", "oh_jupyter")[0])
    floor = median(bare)
    rows = {
        "kernel to its first answer, bare": floor,
        "the same with --ext oh_jupyter": median(with_extension),
        "%load_ext oh_jupyter by itself": median(loading),
    }
    for name, cost in rows.items():
        print(
            f"{name:34} {cost.seconds * 1000:8.1f} ms {cost.seconds / floor.seconds:6.2f}   "
            f"{cost.memory_bytes / 1e6:6.1f} MB {cost.memory_bytes / floor.memory_bytes:6.2f}"
        )


if __name__ == "__main__":
    main()
