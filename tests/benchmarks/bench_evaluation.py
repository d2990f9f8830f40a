"""MiniWoB on dask.distributed's LocalCluster: 23 tasks, 5 seeds, at 1, 2 and 4 workers, and killed.

``python tests/benchmarks/bench_evaluation.py [SEEDS [WORKERS …]]``; needs the extras eval and dask.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dask.distributed import Client, LocalCluster

from oh_jupyter.browser import flatten_axtree
from oh_jupyter.evaluation import run_trials, summarize

TASKS = [
    f"browsergym/miniwob.{name}"
    for name in (
        "click-button", "click-button-sequence", "click-checkboxes", "click-checkboxes-large",
        "click-checkboxes-transfer", "click-dialog", "click-link", "click-option",
        "click-shades", "click-tab", "click-test", "click-test-2", "choose-list", "enter-date",
        "enter-password", "enter-text", "enter-text-2", "enter-text-dynamic", "focus-text",
        "focus-text-2", "grid-coordinate", "login-user", "simple-algebra",
    )
]  # fmt: skip


def press_something(seen: dict[str, Any]) -> str:
    """An agent that needs no model: it fills in what the goal quotes, and presses a button."""
    tree = flatten_axtree(seen["axtree_object"])
    quoted = re.findall(r'"([^"]*)"', seen["goal"])
    fields = re.findall(r"\[(\w+)\] textbox", tree)
    calls = [f'fill("{bid}", "{text}")' for bid, text in zip(fields, quoted, strict=False)]
    named = [re.search(rf"\[(\w+)\] \w+ '{re.escape(text)}'", tree) for text in quoted]
    match = next(filter(None, named), None) or re.search(r"\[(\w+)\] button", tree)
    return "\n".join([*calls, f'click("{match[1]}")' if match else "noop(0)"])


def main(seeds: int, workers: list[int]) -> None:
    """Measure, and print a table: a row for each number of workers, and one of a worker's death."""
    print("| workers | episodes | seconds | each | solved | unfinished | load before, after |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in workers:
        play(seeds, count, str(count))
    play(seeds, 2, "2, one killed by `kill -9`", killing=True)


def play(seeds: int, count: int, label: str, *, killing: bool = False) -> None:
    """Play all episodes and print their row; when killing, a worker dies after a third of them."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        start = time.monotonic()
        trials = []
        for trial in run_trials(
            TASKS, press_something, seeds=seeds, steps=3,
            executor=client.get_executor(), out=Path(folder, "results.jsonl"),
        ):  # fmt: skip
            trials.append(trial)
            if killing and len(trials) == len(TASKS) * seeds // 3:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)
        seconds = time.monotonic() - start
    whole = summarize(trials)[-1]
    assert sorted((trial.task, trial.seed) for trial in trials) == sorted(
        (task, seed) for task in TASKS for seed in range(seeds)
    ), "each episode has exactly one result"
    print(
        f"| {label} | {whole.trials} | {seconds:.0f} | {seconds / whole.trials:.1f} s "
        f"| {whole.solved} ({whole.low:.0%} to {whole.high:.0%}) | {whole.unfinished} "
        f"| {load:.1f}, {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores |",
        flush=True,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5, [int(word) for word in sys.argv[2:]] or [1, 2, 4])
