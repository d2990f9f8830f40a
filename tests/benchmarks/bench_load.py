"""What ``%load_ext oh_jupyter`` costs a kernel, beside what the kernel costs itself.

Run it with ``python tests/benchmarks/bench_load.py``. Each round uses a fresh kernel.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time

from jupyter_client.manager import KernelManager

ROUNDS = 7

MEASURE = """
import gc, json, os, time
def _pages():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
_before = _pages()
_begun = time.perf_counter()
get_ipython().run_line_magic("load_ext", "oh_jupyter")
_seconds = time.perf_counter() - _begun
print(json.dumps([_seconds, _pages() - _before, _before]))
"""


def one_round() -> tuple[float, int, int, float]:
    """Seconds and bytes of loading, bytes of the kernel before, seconds of its start."""
    begun = time.perf_counter()
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        start = time.perf_counter() - begun
        lines: list[str] = []
        client.execute_interactive(
            MEASURE,
            output_hook=lambda message: lines.append(message["content"].get("text", "")),
            timeout=60,
        )
        seconds, added, before = json.loads("".join(lines))
        return seconds, added, before, start
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as store:
        os.environ["FILE_STORE_PATH"] = store
        rounds = [one_round() for _ in range(ROUNDS)]
    seconds, added, before, start = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    print(f"{'%load_ext oh_jupyter':34} {seconds * 1000:8.1f} ms   {added / 1e6:6.1f} MB")
    print(f"{'kernel start, without it':34} {start * 1000:8.1f} ms   {before / 1e6:6.1f} MB")
    print(f"{'ratio':34} {seconds / start:8.2f}      {added / before:6.2f}")


if __name__ == "__main__":
    main()
