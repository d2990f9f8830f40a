"""Statistics of many episodes: success rate of each task with a confidence interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist, fmean
from typing import Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import Trial

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
