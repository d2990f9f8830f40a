"""Cost of a checkpoint: ``python tests/benchmarks/bench_checkpoints.py [files]``.

The baseline is ``git status`` with an index that is up to date: what any look at all files costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from oh_jupyter.checkpoints import Checkpoints

REPETITIONS = 5


def milliseconds(function: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


class Steps:
    """Steps of a turn, each the begin and the end of one that writes some files."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.root = root
        self.checkpoints = Checkpoints(root, directory, is_watched=True)
        self.turn = self.checkpoints.begin("turn", in_steps=True)
        self.run(0)

    def run(self, files: int) -> None:
        step = self.checkpoints.begin_step("step", turn=self.turn.id, root=os.getpid())
        for i in range(files):
            (self.root / "0" / "0" / f"{i}.py").write_text(f"{time.time_ns()}\n")
        self.checkpoints.end_step(step)


def main(files: int) -> None:
    """Print one line for each case."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "work")
        for i in range(files):
            path = root / f"{i // 2500}" / f"{i // 100 % 25}" / f"{i}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"number = {i}\n" * (i % 100))
        own = Path(folder, "own.git")
        git = ["git", f"--git-dir={own}", f"--work-tree={root}"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        status = milliseconds(
            lambda: subprocess.run([*git, "status", "-s"], stdout=subprocess.DEVNULL, check=True)
        )
        checkpoints = Checkpoints(root, Path(folder, "kept"))
        first = milliseconds(lambda: checkpoints.begin("first"), 1)
        unchanged = milliseconds(lambda: checkpoints.begin("again"))
        (root / "0" / "0" / "1.py").write_text("changed\n")
        changed = milliseconds(lambda: checkpoints.begin("one changed"), 1)
        turn = checkpoints.begin("turn")
        for i in range(100):
            (root / "0" / "0" / f"{i}.py").write_text("changed again\n")
        checkpoints.end(turn.id)
        back = milliseconds(lambda: checkpoints.rewind(turn.id), 1)
        steps = Steps(root, Path(folder, "watched"))
        step_none = milliseconds(lambda: steps.run(0))
        step_some = milliseconds(lambda: steps.run(20))
        session = [milliseconds(lambda: steps.run(1), 1) for _ in range(1000)]
        size = sum(path.stat().st_size for path in checkpoints.directory.rglob("*"))
        original = sum(path.stat().st_size for path in root.rglob("*.py"))
    print(f"{files} files, {original / 2**20:.0f} MB; load {os.getloadavg()[0]:.1f}")
    for name, value in (
        ("git status", status),
        ("first checkpoint", first),
        ("checkpoint, nothing changed", unchanged),
        ("checkpoint, one file changed", changed),
        ("rewind of 100 files", back),
        ("step, nothing changed", step_none),
        ("step, 20 files changed", step_some),
        ("step 1 to 100 of 1,000", statistics.median(session[:100])),
        ("step 901 to 1,000", statistics.median(session[-100:])),
    ):
        print(f"{name:30} {value:9.1f} ms   {value / status:6.2f} of git status")
    print(f"{'kept on disk':30} {size / 2**20:9.1f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
