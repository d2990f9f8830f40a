"""Results of a run in a file store, as JSON lines, and statistics with confidence intervals."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any
from urllib.parse import quote

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import EVENTS_FILE, Trial
from oh_jupyter.storage import FileStore, get_file_store

LINES_INTERVAL_SECONDS = 1.0
"""Minimum interval between two writes of the file of all results, which is written whole."""


class Results:
    """Results below ``NAME.jsonl``, a file for people and their tools.

    The file of each episode is authoritative: it is created once, even if the episode is repeated.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        """Open the results, which may not exist yet."""
        self._is_url = "://" in os.fspath(out)
        # Workers have their own current directory.
        self.out = os.fspath(out) if self._is_url else os.path.abspath(os.path.expanduser(out))
        self._folder, self.name = os.path.split(self.out)
        if not self.name.endswith(".jsonl"):
            raise EvaluationError(f"Results are JSON lines: give {out} a name that ends in .jsonl")
        self._root = self.name.removesuffix(".jsonl")
        self._trials: list[Trial] = []
        self._written_at = 0.0

    @cached_property
    def store(self) -> FileStore:
        """The store of the results; a missing local folder is created."""
        if self._is_url:
            return get_file_store(self._folder)
        return get_file_store("local", self._folder)

    @property
    def _existing_store(self) -> FileStore:
        """The store of the results; FileNotFoundError if it is a missing local folder."""
        if not self._is_url:
            os.stat(self._folder)
        return self.store

    def read(self) -> dict[tuple[str, int], Trial]:
        """Return the existing results in the order of their completion."""
        try:
            paths = self._existing_store.list(f"{self._root}/trials")
        except FileNotFoundError:
            return {}
        trials = map(_from_json, self.store.read_many(paths).values())
        self._trials = sorted(trials, key=lambda trial: trial.finished_at)
        return {(trial.task, trial.seed): trial for trial in self._trials}

    def find(self, task: str, seed: int) -> Trial | None:
        """Return the result of an episode, or None."""
        try:
            return _from_json(self._existing_store.read_bytes(self._trial_path(task, seed)))
        except FileNotFoundError:
            return None

    def record(self, trial: Trial, files: Path | None = None) -> Trial:
        """Store an episode's files and result; return the earlier result if there is one."""
        paths = [path for path in files.rglob("*") if path.is_file()] if files else []
        if files is not None:
            names = {self.file_path(trial, path.relative_to(files).as_posix()): path
                     for path in paths}  # fmt: skip
            self.store.write_many({name: path.read_bytes() for name, path in names.items()})
        try:
            self.store.create(self._trial_path(trial.task, trial.seed), json.dumps(asdict(trial)))
        except FileExistsError:
            return self.find(trial.task, trial.seed) or trial
        return trial

    def append(self, trial: Trial) -> None:
        """Add a recorded result to the JSON lines."""
        self._trials.append(trial)
        if time.monotonic() - self._written_at > LINES_INTERVAL_SECONDS:
            self.write_lines()

    def write_lines(self) -> None:
        """Write the JSON lines."""
        self.store.write(self.name, "".join(f"{json.dumps(asdict(t))}\n" for t in self._trials))
        self._written_at = time.monotonic()

    def events(self, trial: Trial) -> Iterable[dict[str, Any]]:
        """Yield the log of an episode, in the protocol's form."""
        try:
            lines = self._existing_store.read(self.file_path(trial, EVENTS_FILE)).splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            yield json.loads(line)

    def files(self, trial: Trial) -> list[str]:
        """Return the paths of an episode's files in the store."""
        try:
            return list(self._below(self.file_path(trial, "")))
        except FileNotFoundError:
            return []

    def _below(self, folder: str) -> Iterator[str]:
        for path in self._existing_store.list(folder):
            if path.endswith("/"):
                yield from self._below(path)
            else:
                yield path

    def file_path(self, trial: Trial, name: str) -> str:
        """Return the path of an episode's file in the store."""
        return f"{self._root}/episodes/{quote(trial.task, safe='')}/{trial.seed}/{name}"

    def _trial_path(self, task: str, seed: int) -> str:
        return f"{self._root}/trials/{quote(task, safe='')}.{seed}.json"


def _from_json(data: bytes) -> Trial:
    return Trial(**json.loads(data))


CONFIDENCE = 0.95
ALL = "all"


@dataclass(frozen=True)
class TaskSummary:
    """Statistics of a task.

    Attributes:
        task: Its name, or ``all`` for those of all tasks together.
        trials: Number of episodes.
        solved: Number of episodes with a positive reward.
        low: Lower end of the 95 % confidence interval of the success rate (Wilson).
        high: Upper end.
        steps: Mean number of actions.
        seconds: Mean duration.
        unfinished: Number of episodes that were stopped at the deadline or died.
        measures: Means of the tasks' further figures, by name.
    """

    task: str
    trials: int
    solved: int
    low: float
    high: float
    steps: float
    seconds: float
    unfinished: int
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Success rate, 0 to 1."""
        return self.solved / self.trials


def wilson_interval(solved: int, trials: int) -> tuple[float, float]:
    """Return the confidence interval of a rate by Wilson's score, which fits few trials too."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    rate, spread = solved / trials, z * z / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / trials + spread / trials / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def summarize(trials: Iterable[Trial], *, by_group: bool = False) -> list[TaskSummary]:
    """Summarize results.

    Args:
        trials: Results of any tasks, in any order.
        by_group: Summarize the tasks of each group together, such as ``stateful/bash/*``.

    Returns:
        One summary for each task or group, by name, and if there are several one for all.
    """
    by_task: dict[str, list[Trial]] = {}
    for trial in trials:
        name = f"{trial.task.rpartition('/')[0]}/*" if by_group else trial.task
        by_task.setdefault(name, []).append(trial)
    summaries = [_summary(task, by_task[task]) for task in sorted(by_task)]
    if len(summaries) > 1:
        summaries.append(
            _summary(ALL, [trial for of_task in by_task.values() for trial in of_task])
        )
    return summaries


def _summary(task: str, trials: Sequence[Trial]) -> TaskSummary:
    solved = sum(trial.solved for trial in trials)
    return TaskSummary(
        task,
        len(trials),
        solved,
        *wilson_interval(solved, len(trials)),
        steps=fmean(trial.steps for trial in trials),
        seconds=fmean(trial.seconds for trial in trials),
        unfinished=sum(trial.ended != "finished" for trial in trials),
        measures={
            name: fmean(trial.measures[name] for trial in trials if name in trial.measures)
            for name in {name: None for trial in trials for name in trial.measures}
        },
    )


def plot_success(trials: Iterable[Trial], axes: Any = None, *, by_group: bool = False) -> Any:
    """Plot the success rate of each task with its confidence interval.

    Args:
        trials: The results.
        by_group: See ``summarize``.
        axes: Axes to draw on; None for a new figure.

    Returns:
        Matplotlib's axes.

    Raises:
        EvaluationError: Matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise EvaluationError("A plot needs matplotlib: pip install 'oh_jupyter[plots]'") from None
    rows = summarize(trials, by_group=by_group)[::-1]
    if axes is None:
        _, axes = pyplot.subplots(figsize=(7, 0.6 + 0.3 * len(rows)), layout="constrained")
    errors = [[row.rate - row.low for row in rows], [row.high - row.rate for row in rows]]
    axes.barh([row.task for row in rows], [row.rate for row in rows], xerr=errors, capsize=3)
    axes.set(xlim=(0, 1), xlabel="solved")
    return axes
