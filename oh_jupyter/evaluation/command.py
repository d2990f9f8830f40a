"""``oh-jupyter evaluate``: an agent on tasks, from a terminal."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from typing import Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import EVENTS_FILE, Trial
from oh_jupyter.evaluation.harness_task import HARNESSES
from oh_jupyter.evaluation.results import Results, plot_success, summarize
from oh_jupyter.evaluation.runner import DEFAULT_TIMEOUT_SECONDS, run_trials

DEFAULT_STEPS = 30
MAX_ERROR_CHARS = 100
COLUMNS = ("task", "solved", "of", "95 % interval", "steps", "seconds", "unfinished")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("tasks", nargs="+", help="names or patterns, such as 'stateful/bash/*' or harbor/FOLDER")
    add(
        "--agent",
        help="scripted, module:function, an agent such as claude, a command line, inspect:MODEL, "
        "or harbor:AGENT",
    )
    add("--seeds", type=int, default=1, help="episodes of each task")
    add("--steps", type=int, default=DEFAULT_STEPS, help="actions that an episode may take")
    add("--workers", type=int, default=1, help="parallel episodes")
    add(
        "--dask",
        metavar="ADDRESS",
        help="run them on the workers of this Dask scheduler; local starts --workers of them here",
    )
    add("--out", metavar="FILE.jsonl", help="file or URL for results; existing ones are kept")
    add("--timeout", type=float, default=DEFAULT_TIMEOUT_SECONDS, help="seconds for an episode")
    add("--trace", action="store_true", help="also record Playwright's traces")
    add("--plot", metavar="FILE.png", help="write a plot of the success rates")
    add("--by-group", action="store_true", help="summarize groups, such as stateful/bash/*")


def evaluate(options: argparse.Namespace) -> int:
    """Run the tasks and print their results, or print those of an earlier run."""
    if options.tasks[0] == "show":
        return _show(options)
    from oh_jupyter.config import read_settings
    from oh_jupyter.evaluation.agents_by_name import find_agent
    from oh_jupyter.trust import is_trusted

    if options.agent is None:
        raise EvaluationError("Name an agent, such as --agent scripted or --agent claude")
    agent = find_agent(options.agent, read_settings(is_trusted=is_trusted)[0])
    trials = []
    with (
        _executor(options.dask, options.workers) as executor,
        closing(
            run_trials(
                options.tasks,
                agent,
                seeds=options.seeds,
                steps=options.steps,
                workers=None if executor is not None else options.workers,
                executor=executor,
                out=options.out,
                timeout=options.timeout,
                trace=options.trace,
            )
        ) as running,
    ):
        for trial in running:
            trials.append(trial)
            print(_line(trial), flush=True)
    return _summarize(trials, options)


def needs_server(tasks: Sequence[str]) -> bool:
    """Return whether tasks run on the kernel of a Jupyter server."""
    return any(task.partition("/")[0] in HARNESSES for task in tasks)


@contextmanager
def _executor(dask: str | None, workers: int) -> Iterator[Executor | None]:
    """Open Dask's executor; None without Dask."""
    if dask is None:
        yield None
        return
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise EvaluationError("Dask is not installed: pip install 'oh_jupyter[dask]'") from None
    if dask == "local":
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(n_workers=workers, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client.get_executor()
        return
    try:
        client = distributed.Client(dask)
    except (OSError, ValueError) as error:
        raise EvaluationError(f"The Dask scheduler {dask} cannot be reached: {error}") from error
    with client:
        yield client.get_executor()


def _line(trial: Trial) -> str:
    verdict = "solved" if trial.solved else "failed" if trial.ended == "finished" else trial.ended
    error = f"  {trial.error[:MAX_ERROR_CHARS]}" if trial.error else ""
    return f"{verdict:9}{trial.seconds:7.1f} s  {trial.task}  seed {trial.seed}{error}"


def _summarize(trials: Sequence[Trial], options: argparse.Namespace) -> int:
    """Print the table, and write the plot."""
    rows = summarize(trials, by_group=options.by_group)
    names = list({name: None for row in rows for name in row.measures})
    table = [(*COLUMNS, *names)]
    for row in rows:
        measures = [f"{row.measures[name]:.1f}" if name in row.measures else "" for name in names]
        interval = f"{row.low:.0%} to {row.high:.0%}"
        figures = (f"{row.steps:.1f}", f"{row.seconds:.1f}", str(row.unfinished))
        table.append((row.task, str(row.solved), str(row.trials), interval, *figures, *measures))
    print("\n" + format_table(table))
    if options.plot:
        plot_success(trials, by_group=options.by_group).figure.savefig(options.plot)
        print(f"Plot: {options.plot}")
    if options.out:
        print(f"An episode: oh-jupyter evaluate show {options.out} TASK SEED")
    return 0


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of text, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _show(options: argparse.Namespace) -> int:
    """Print the results of a run, or the log of an episode."""
    words = options.tasks[1:]
    if len(words) not in (1, 3) or (len(words) == 3 and not words[2].isdecimal()):
        raise EvaluationError("Say which: oh-jupyter evaluate show FILE.jsonl [TASK SEED]")
    results = Results(words[0])
    if len(words) == 1:
        trials = list(results.read().values())
        if not trials:
            raise EvaluationError(f"There are no results in {results.out}")
        for trial in trials:
            print(_line(trial))
        return _summarize(trials, options)
    episode = results.find(words[1], int(words[2]))
    if episode is None:
        raise EvaluationError(f"{words[0]} has no result of {words[1]} with seed {words[2]}")
    print(_line(episode))
    for event in results.events(episode):
        kind = event.get("action") or event.get("observation")
        print(f"{event.get('source') or '':6} {kind:16} {str(event['message']).strip()}")
    for path in results.files(episode):
        where = results.store.get_absolute_path(path)
        print(f"%oh_log --file {where}" if path.endswith(f"/{EVENTS_FILE}") else where)
    return 0
