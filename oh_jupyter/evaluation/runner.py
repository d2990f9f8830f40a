"""Trials of an agent on a set of tasks, in this process or through an executor."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    as_completed,
)
from contextlib import closing
from functools import partial
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from oh_jupyter.background import thread_pool
from oh_jupyter.browser.evaluation import Task
from oh_jupyter.browser.evaluation.tasks import find_task, match_tasks
from oh_jupyter.errors import EvaluationError, OhJupyterError
from oh_jupyter.evaluation.child import Player
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, PlayedTask, Trial
from oh_jupyter.evaluation.harness_task import HARNESSES, match_harness_tasks
from oh_jupyter.evaluation.repository_task import PREFIX, match_repository_tasks
from oh_jupyter.evaluation.results import Results
from oh_jupyter.evaluation.stateful import PREFIX as STATEFUL
from oh_jupyter.evaluation.stateful import match_stateful_tasks
from oh_jupyter.evaluation.worker import Children, EpisodeRequest, make_trial, run_episode

DEFAULT_TIMEOUT_SECONDS = 600.0


def run_trials(
    tasks: Iterable[str | Task | PlayedTask],
    agent: Agent,
    *,
    seeds: int = 1,
    steps: int = 10,
    workers: int | None = None,
    executor: Executor | None = None,
    out: str | PathLike[str] | None = None,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    trace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Generator[Trial, None, None]:
    """Let an agent try tasks.

    With ``workers`` or an ``executor`` each episode has its own process, which is stopped at the
    deadline; agent and task are pickled for it. Without both, episodes run one after the other in
    this process, in one browser, without a deadline; the agent may then be any callable.

    Args:
        tasks: Names, patterns such as ``browsergym/miniwob.*``, or task objects.
        agent: The agent.
        seeds: Number of episodes of each task, with the seeds 0, 1, …
        steps: Maximum number of actions of an episode.
        workers: Number of simultaneous episodes on this machine.
        executor: Runs them instead, such as dask.distributed's ``client.get_executor()``.
        out: A file or URL that ends in ``.jsonl`` and that all workers can write. It receives the
            results, a folder beside it the files of each episode; episodes that have a result
            there are skipped.
        timeout: Seconds after which an episode is stopped.
        trace: Also record episodes in a browser for Playwright's trace viewer.
        options: Arguments for :class:`~oh_jupyter.browser.BrowserEnv`.

    Returns:
        The result of each episode: first the existing ones, then each as it ends.

    Raises:
        EvaluationError: An argument is invalid, or, while iterating, the evaluation cannot
            continue; finished episodes are in ``out``.
    """
    _check(agent, executor, timeout, seeds=seeds, steps=steps, workers=workers)
    wanted = [(task, seed) for task in find_tasks(tasks) for seed in range(seeds)]
    player = Player(agent, steps, trace, dict(options or {}))
    results = Results(out) if out is not None else None
    return _trials(wanted, player, results, workers, executor, timeout)


def _check(agent: Agent, executor: Executor | None, timeout: float, **counts: int | None) -> None:
    """Raise EvaluationError for arguments with which no episode can start."""
    if not callable(agent):
        raise EvaluationError(
            f"The agent is {agent!r}, which cannot be called. It is a function that gets an "
            "observation and returns the next action."
        )
    for name, count in counts.items():
        if not (
            (isinstance(count, Integral) and count > 0) or (name == "workers" and count is None)
        ):
            raise EvaluationError(f"{name} is a number of 1 or more, not {count!r}")
    if not isinstance(timeout, Real) or not 0 < timeout <= threading.TIMEOUT_MAX:
        raise EvaluationError(f"timeout is a number of seconds above 0, not {timeout!r}")
    if not isinstance(executor, Executor | None):
        raise EvaluationError(
            f"The executor is {executor!r}: it is one of concurrent.futures, such as "
            "client.get_executor() of dask.distributed"
        )


def _trials(
    wanted: list[tuple[Any, int]],
    player: Player,
    results: Results | None,
    workers: int | None,
    executor: Executor | None,
    timeout: float,
) -> Generator[Trial, None, None]:
    earlier = results.read() if results is not None else {}
    missing = []
    for task, seed in wanted:
        if (_name(task), seed) in earlier:
            yield earlier[_name(task), seed]
        else:
            missing.append((task, seed))
    if workers is None and executor is None:
        trials = _in_this_process(missing, player, results)
    else:
        requests = _requests(missing, player, timeout, results.out if results is not None else "")
        trials = _in_children(requests, results, executor, workers or 1)
    try:
        with closing(trials):
            for trial in trials:
                if results is not None:
                    results.append(trial)
                yield trial
    finally:
        if results is not None:
            results.write_lines()


def find_tasks(tasks: Iterable[str | Task | PlayedTask]) -> list[Any]:
    """Return task objects by their names; those of BrowserGym stay names."""
    objects: list[Any] = []
    for task in tasks:
        if isinstance(task, Task | PlayedTask):
            objects.append(task)
        elif not isinstance(task, str):
            raise EvaluationError(
                f"{task!r} is not a task: give a name, a pattern, or an object with name and play"
            )
        elif task.startswith(PREFIX):
            objects += match_repository_tasks(task)
        elif task.startswith(STATEFUL):
            objects += match_stateful_tasks(task)
        elif task.partition("/")[0] in HARNESSES:
            objects += match_harness_tasks(task)
        else:
            names = match_tasks([task])
            objects += [n if n.startswith("browsergym/") else find_task(n) for n in names]
    return objects


def _name(task: Any) -> str:
    return task if isinstance(task, str) else str(task.name)


def _in_this_process(
    missing: list[tuple[Any, int]], player: Player, results: Results | None
) -> Generator[Trial, None, None]:
    from oh_jupyter.evaluation.browser_task import Browsers

    browsers = Browsers(player.options)
    try:
        for task, seed in missing:
            with tempfile.TemporaryDirectory(prefix="oh_jupyter-episode-") as folder:
                start = time.monotonic()
                log = EpisodeLog(Path(folder)) if results is not None else None
                outcome = player.play(task, seed, log, browsers)
                request = EpisodeRequest(_name(task), seed, b"", 0, "")
                trial = make_trial(request, time.monotonic() - start, **outcome._asdict())
                yield trial if results is None else results.record(trial, Path(folder))
    finally:
        browsers.close()


def _requests(
    missing: list[tuple[Any, int]], player: Player, timeout: float, out: str
) -> Iterator[EpisodeRequest]:
    try:
        import cloudpickle
    except ImportError:
        raise EvaluationError(
            "Processes of their own need the package cloudpickle: pip install 'oh_jupyter[dask]'"
        ) from None
    for task, seed in missing:
        try:
            play = cloudpickle.dumps((task, player))
        except Exception as error:  # an object's own pickling may fail in any way
            raise EvaluationError(
                f"The agent or the task {_name(task)} cannot be sent to another process: "
                f"{type(error).__name__}: {error}. Make what cannot be sent at the first call."
            ) from error
        yield EpisodeRequest(_name(task), seed, play, timeout, out)


def _in_children(
    requests: Iterator[EpisodeRequest],
    results: Results | None,
    executor: Executor | None,
    workers: int,
) -> Generator[Trial, None, None]:
    children = Children()
    pool = executor or thread_pool(workers, "oh-evaluation-episode")
    run = run_episode if executor is not None else partial(run_episode, children=children)
    futures: dict[Future[Trial], EpisodeRequest] = {}
    try:
        for request in requests:
            futures[pool.submit(run, request)] = request
        for future in as_completed(futures):
            yield _result(future, futures.pop(future), results)
    finally:
        for future in futures:
            future.cancel()
        children.close()
        if executor is None:
            pool.shutdown()


def _result(future: Future[Trial], request: EpisodeRequest, results: Results | None) -> Trial:
    """Return the result that an executor has; a worker's death is a result as well."""
    try:
        return future.result()
    except OhJupyterError:
        raise
    except (BrokenExecutor, CancelledError) as error:
        raise EvaluationError(
            f"The executor ended ({type(error).__name__}). With out= what has a result is kept: "
            "the same call with a new executor does the rest."
        ) from error
    except Exception as error:  # engines report a dead worker in various ways
        trial = make_trial(request, ended="died", error=f"{type(error).__name__}: {error}")
        return trial if results is None else results.record(trial)
