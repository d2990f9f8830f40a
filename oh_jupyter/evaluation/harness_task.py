"""Evaluations of other harnesses as tasks: evals of Inspect AI, and tasks of Harbor.

The harness runs as a program, with our sandbox or environment, and in its own environment of
packages if you want. Its logs are files of the episode.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, Outcome
from oh_jupyter.evaluation.stateful import ScriptedAgent
from oh_jupyter.installed import find_program, python_command

ENVIRONMENT = "oh_jupyter.adapters.harbor:OhEnvironment"
MAX_ERROR_CHARS = 300


@dataclass(frozen=True)
class HarnessAgent:
    """A model of Inspect or an agent of Harbor, by its name there."""

    harness: str
    name: str

    def __call__(self, seen: Any) -> NoReturn:
        """Raise EvaluationError: only its harness can use it."""
        raise EvaluationError(
            f"{self.harness}:{self.name} is for tasks named {self.harness}/…, not for this one"
        )


@dataclass(frozen=True)
class HarnessTask:
    """An eval of Inspect AI, or a task or data set of Harbor.

    Attributes:
        harness: One of ``HARNESSES``.
        target: File or name of the eval; folder of the task, or name of the data set.
    """

    harness: str
    target: str

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.harness}/{self.target}"

    def play(self, agent: Agent, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        """Run the harness with an agent of it, or with its scripted one."""
        run = HARNESSES[self.harness]
        if isinstance(agent, HarnessAgent) and agent.harness == self.harness:
            agent_name = agent.name
        elif isinstance(agent, ScriptedAgent):
            agent_name = ""
        else:
            raise EvaluationError(
                f"{self.name} needs an agent of its harness: {self.harness}:NAME, or scripted"
            )
        with tempfile.TemporaryDirectory(prefix="oh_jupyter-harness-") as temp_dir:
            folder = Path(temp_dir) if log is None else log.path(self.harness)
            folder.mkdir(exist_ok=True)
            return run(self.target, agent_name, folder)


def _run(argv: list[str], folder: Path) -> str:
    """Run a harness, and return the end of its output if it failed."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    )  # fmt: skip
    (folder / "output.txt").write_text(done.stdout, "utf-8")
    return done.stdout.strip()[-MAX_ERROR_CHARS:] if done.returncode else ""


def _inspect(target: str, model: str, folder: Path) -> Outcome:
    """Run an eval; the reward is the first metric of its first scorer."""
    program = find_program("inspect")
    if importlib.util.find_spec("inspect_ai") is not None:
        command = python_command("inspect_ai")
    elif program is not None:
        command = [program]
    else:
        raise EvaluationError(
            "Evals of Inspect need its package: pip install 'oh_jupyter[inspect-ai]'"
        )
    options = ["--display", "none", "--log-format", "json", "--log-dir", str(folder)]
    model = model or "mockllm/model"
    error = _run([*command, "eval", target, "--model", model, *options], folder)
    for path in sorted(folder.glob("*.json")):
        log = json.loads(path.read_text("utf-8"))
        samples = int((log.get("results") or {}).get("total_samples") or 0)
        if log["status"] != "success":
            return Outcome(0.0, samples, str((log.get("error") or {}).get("message", error)))
        scores = log["results"]["scores"]
        metrics = {
            f"{score['name']} {name}": float(metric["value"])
            for score in scores
            for name, metric in score["metrics"].items()
        }
        return Outcome(next(iter(metrics.values()), 0.0), samples, "", metrics)
    return Outcome(0.0, 0, error or "Inspect wrote no log")


def _harbor(target: str, agent: str, folder: Path) -> Outcome:
    """Run a task or data set; the reward is the mean of its trials."""
    program = find_program("harbor")
    if program is None:
        raise EvaluationError(
            "Tasks of Harbor need its program: pip install 'oh_jupyter[harbor]' with Python 3.12 "
            "or newer"
        )
    chosen = ["--path", target] if os.path.isdir(target) else ["--dataset", target]
    options = ["--env", ENVIRONMENT, "--jobs-dir", str(folder), "--quiet", "--yes"]
    error = _run([program, "run", *chosen, "--agent", agent or "oracle", *options], folder)
    trials = [json.loads(path.read_text("utf-8")) for path in folder.glob("*/*/result.json")]
    if not trials:
        return Outcome(0.0, 0, error or "Harbor wrote no results")
    rewards = [_reward(trial) for trial in trials]
    failures = [trial["exception_info"] for trial in trials if trial.get("exception_info")]
    if failures:
        first = failures[0]
        error = f"{first.get('exception_type')}: {first.get('exception_message')}"
    solved = sum(reward > 0 for reward in rewards)
    measures = {"trials": float(len(trials)), "trials_solved": float(solved)}
    return Outcome(sum(rewards) / len(rewards), len(trials), error[:MAX_ERROR_CHARS], measures)


def _reward(trial: dict[str, Any]) -> float:
    rewards = (trial.get("verifier_result") or {}).get("rewards") or {}
    return float(rewards.get("reward", next(iter(rewards.values()), 0.0)))


HARNESSES: dict[str, Callable[[str, str, Path], Outcome]] = {
    "inspect": _inspect,
    "harbor": _harbor,
}


def match_harness_tasks(name: str) -> Iterable[HarnessTask]:
    """Return the task of a name such as ``inspect/eval.py@task`` or ``harbor/FOLDER``.

    A folder of Harbor's tasks has one task for each of its folders with a ``task.toml``.
    """
    harness, _, target = name.partition("/")
    if not target:
        raise EvaluationError(f"{name!r} does not say which: inspect/FILE.py or harbor/FOLDER")
    folder = Path(target)
    if harness == "harbor" and folder.is_dir():
        single = (folder / "task.toml").exists()
        folders = [folder] if single else sorted(p.parent for p in folder.glob("*/task.toml"))
        if not folders:
            raise EvaluationError(f"There is no task.toml in {target}, nor in a folder of it")
        return [HarnessTask(harness, str(each.absolute())) for each in folders]
    if harness == "inspect" and os.path.exists(target.partition("@")[0]):
        target = os.path.abspath(target)
    return [HarnessTask(harness, target)]
