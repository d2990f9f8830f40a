"""Two kernels with different workspaces edit the same files over REST; nothing may be lost.

Run it with ``python tests/benchmarks/stress_edits.py [EDITS]``. An edit that is refused, since the
other kernel has changed the same place, is repeated as its message says. It fails if a line that
was reported done is not in its file exactly once.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oh_jupyter.client import Fleet, RuntimeClient
from oh_jupyter.testing import run_server

EDITS = 200
FILES = 4


def edit(runtime: RuntimeClient, name: str, files: list[Path], edits: int) -> tuple[list, int]:
    """Insert lines into files by chance: which lines went where, and how many were refused."""
    dice, done, refused = random.Random(name), [], 0
    for number in range(edits):
        file, line = dice.choice(files), f"{name} {number}"
        while runtime.edit("insert", str(file), insert_line=1, new_str=line).content.startswith(
            "ERROR:"
        ):
            refused += 1
        done.append((file, line))
    return done, refused


def main(edits: int) -> None:
    with tempfile.TemporaryDirectory() as directory, run_server(Path(directory)) as server:
        files = [Path(directory, f"shared {number}.txt") for number in range(FILES)]
        for file in files:
            file.write_text("begin\nend\n")
        for name in "ab":
            Path(directory, "root", name).mkdir()
        with (
            Fleet(server.url, server.token, 1, path="a") as first,
            Fleet(server.url, server.token, 1, path="b") as second,
            ThreadPoolExecutor() as threads,
        ):
            started = time.monotonic()
            futures = [
                threads.submit(
                    kernels.map, lambda runtime, name: edit(runtime, name, files, edits), [name]
                )
                for name, kernels in (("a", first), ("b", second))
            ]
            results = [future.result()[0] for future in futures]
            seconds = time.monotonic() - started
        for result in results:
            if result.error is not None:
                raise result.error
        done = [pair for result in results for pair in result.value[0]]
        lost = [line for file, line in done if file.read_text().splitlines().count(line) != 1]
        extra = sum(len(file.read_text().splitlines()) - 2 for file in files) - len(done)
        refused = sum(result.value[1] for result in results)
    print(
        f"{len(done)} edits done in {seconds:.1f} s, {refused} refused and repeated, "
        f"{len(lost)} lost or twice, {extra} too many"
    )
    if lost or extra:
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else EDITS)
