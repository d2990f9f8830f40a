"""Episodes in processes of their own: each has one result, whatever died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation import Results, Trial, run_trials, summarize
from oh_jupyter.evaluation.results import wilson_interval
from oh_jupyter.testing import wait_until

HERE = Path(__file__).parent
GAMES = HERE / "games.py"
KEYS = {(name, seed) for name in ("chess", "go") for seed in (0, 1)}


@pytest.fixture
def games(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tasks, sent along with each episode as those of a notebook are."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("games_of_the_tests", GAMES)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)


@contextmanager
def program(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, GAMES, *arguments], stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def keys(results: Path) -> list[tuple[str, int]]:
    rows = map(json.loads, results.read_text().splitlines())
    return sorted((row["task"], row["seed"]) for row in rows)


def tries(folder: Path, name: str, seed: int) -> list[int]:
    path = folder / f"{name}.{seed}.tries"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_results_are_kept_and_not_made_twice(games: Any, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    tasks = [games.Game("chess", tmp_path), games.Game("a/b", tmp_path / "..")]
    (tmp_path / ".." / "a").mkdir(exist_ok=True)
    first = list(run_trials(tasks, games.even, seeds=2, workers=2, out=out))
    assert {(t.task, t.seed): (t.reward, t.ended, t.error) for t in first} == {
        (name, seed): (1.0 - seed, "finished", "") for name in ("chess", "a/b") for seed in (0, 1)
    }
    results = Results(out)
    assert list(results.read().values()) == sorted(first, key=lambda trial: trial.finished_at)
    assert [event["args"]["command"] for event in results.events(first[0])] == [
        f"try {first[0].seed}"
    ]
    more = list(run_trials(tasks, games.even, seeds=3, workers=1, out=str(out)))
    assert {(t.task, t.seed) for t in more} == {(n, s) for n in ("chess", "a/b") for s in range(3)}
    assert all(len(tries(tmp_path, "chess", seed)) == 1 for seed in range(3))
    assert len(keys(out)) == len(set(keys(out))) == 6


@pytest.mark.thorough
def test_a_task_that_never_ends_ends_at_its_deadline(games: Any, tmp_path: Path) -> None:
    task = games.Endless("for-ever", tmp_path)
    out = tmp_path / "run.jsonl"
    with ThreadPoolExecutor(1) as executor:
        # Long enough for the child to begin, on a slow machine, too.
        (trial,) = run_trials([task], games.even, executor=executor, timeout=3, out=out)
    assert (trial.ended, trial.reward) == ("deadline", 0)
    assert "stopped at its deadline" in trial.error
    # There is none if the child was slow to begin.
    assert not [
        path for path in tmp_path.glob("sleeper.*") if psutil.pid_exists(int(path.suffix[1:]))
    ]
    assert keys(out) == [("for-ever", 0)]


def test_a_child_that_dies_is_a_result(games: Any, tmp_path: Path) -> None:
    def deadly(seen: dict[str, Any]) -> bool:
        print("the end is near", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    (trial,) = run_trials([games.Game("chess", tmp_path)], deadly, workers=1)
    assert trial.ended == "died"
    assert "-9: the end is near" in trial.error


@pytest.mark.thorough
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param((), id="driver"),
        pytest.param(("dask",), id="worker", marks=pytest.mark.slow),
    ],
)
def test_each_episode_has_one_result_after_a_kill(tmp_path: Path, engine: tuple[str, ...]) -> None:
    """The driver of a run on this machine is killed, or a worker of LocalCluster."""
    if engine:
        pytest.importorskip("distributed")
    out, gate = tmp_path / "run.jsonl", tmp_path / "gate"
    gate.touch()
    with program(out, *engine) as running:
        workers = json.loads(running.stdout.readline())["workers"] if engine else [running.pid]
        wait_until(lambda: tries(tmp_path, "chess", 1), timeout_seconds=120)
        wait_until(lambda: Results(out).find("chess", 0), timeout_seconds=120)
        child = psutil.Process(tries(tmp_path, "chess", 1)[0])
        doomed = next(each.pid for each in child.parents() if each.pid in workers)
        os.kill(doomed, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(child.pid))
        if not engine:
            rest = running.stdout.read()
            running.wait()
        gate.unlink()
        if engine:
            rest = running.stdout.read()
            assert running.wait() == 0
    if not engine:
        with program(out) as running:
            rest = running.stdout.read()
            assert running.wait() == 0
    yielded = [json.loads(line) for line in rest.splitlines()]
    assert sorted((row["task"], row["seed"]) for row in yielded) == sorted(KEYS)
    assert {row["ended"] for row in yielded} == {"finished"}
    assert keys(out) == sorted(KEYS)
    assert len(tries(tmp_path, "chess", 1)) == 2
    assert len(tries(tmp_path, "chess", 0)) == 1


def test_an_impossible_trial_stops_the_run(games: Any, tmp_path: Path) -> None:
    task = games.Game("chess", tmp_path)
    out = tmp_path / "run.jsonl"
    lock = threading.Lock()
    with pytest.raises(EvaluationError, match="cannot be sent to another process"):
        list(run_trials([task], lambda seen: lock.locked(), workers=1, out=out))
    cloudpickle.unregister_pickle_by_value(games)
    try:
        with pytest.raises(EvaluationError, match=r"cannot be loaded.*games_of_the_tests"):
            list(run_trials([task], games.even, workers=1, out=out))
    finally:
        cloudpickle.register_pickle_by_value(games)
    assert Results(out).read() == {}


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"agent": 5}, "The agent is 5"),
        ({"workers": -1}, "workers is a number of 1 or more, not -1"),
        ({"seeds": 0}, "seeds is"),
        ({"steps": "many"}, "steps is"),
        ({"timeout": float("nan")}, "timeout is"),
        ({"executor": "dask"}, "The executor is 'dask'"),
        ({"tasks": [5]}, "5 is not a task"),
        ({"tasks": ["repository/nothing"]}, "No task matches"),
        ({"out": "run.txt"}, r"ends in \.jsonl"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    games: Any, tmp_path: Path, wrong: dict[str, Any], word: str
) -> None:
    right = {"tasks": [games.Game("chess", tmp_path)], "agent": games.even}
    with pytest.raises(EvaluationError, match=word):
        run_trials(**{**right, **wrong})


def test_reading_results_makes_nothing(tmp_path: Path) -> None:
    results = Results(tmp_path / "none" / "run.jsonl")
    assert results.read() == {}
    assert results.find("chess", 0) is None
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_run_ends_its_children(games: Any, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    trials = run_trials([games.Game("chess", tmp_path)], games.even, seeds=2, workers=2)
    assert next(trials).seed == 0
    (waiting,) = wait_until(lambda: tries(tmp_path, "chess", 1))
    trials.close()
    assert not psutil.pid_exists(waiting)


def test_summary() -> None:
    trials = [Trial("a", seed, seed % 2, 1, 2.0) for seed in range(10)]
    trials.append(Trial("b", 0, 0, 0, 1.0, "", "deadline"))
    a, b, whole = summarize(trials)
    assert (a.task, a.trials, a.solved, a.rate, a.unfinished) == ("a", 10, 5, 0.5, 0)
    # The example of 5 in 10 in Wilson's method is 0.237 to 0.763.
    assert (round(a.low, 3), round(a.high, 3)) == (0.237, 0.763)
    assert (b.unfinished, b.low, whole.trials) == (1, 0, 11)
    assert wilson_interval(3, 3)[1] == 1
