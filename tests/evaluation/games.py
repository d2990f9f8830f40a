"""Tasks and agents that need no browser, and a run of them as a program of its own.

``python games.py OUT [dask]`` prints each result as a line of JSON. What an episode begins and
waits for are files in the folder of OUT.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.evaluation import EpisodeLog, Outcome, run_trials
from oh_jupyter.events import CmdRunAction


@dataclass(frozen=True)
class Game:
    """Notes each try; seed 1 waits as long as there is a gate."""

    name: str
    folder: Path

    def play(self, agent: Any, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        with (self.folder / f"{self.name}.{seed}.tries").open("a") as file:
            file.write(f"{os.getpid()}\n")
        while seed == 1 and (self.folder / "gate").exists():
            threading.Event().wait(0.02)
        if log is not None:
            log.event(CmdRunAction(f"try {seed}"))
        return Outcome(float(agent({"goal": self.name, "seed": seed})), 1)


@dataclass(frozen=True)
class Endless:
    """A task that never ends, nor does its child."""

    name: str
    folder: Path

    def play(self, agent: Any, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        sleeper = subprocess.Popen(["sleep", "1000000"], start_new_session=True)
        (self.folder / f"sleeper.{sleeper.pid}").touch()
        sleeper.wait()
        raise AssertionError


def even(seen: dict[str, Any]) -> bool:
    return seen["seed"] % 2 == 0


def main(out: Path, engine: str = "") -> None:
    tasks = [Game(name, out.parent) for name in ("chess", "go")]
    if not engine:
        for trial in run_trials(tasks, even, seeds=2, workers=2, out=out):
            print(json.dumps(asdict(trial)), flush=True)
        return
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        print(json.dumps({"workers": list(client.run(os.getpid).values())}), flush=True)
        for trial in run_trials(tasks, even, seeds=2, executor=client.get_executor(), out=out):
            print(json.dumps(asdict(trial)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
