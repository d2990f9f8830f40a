"""``%oh_browse eval``: an agent's trials, their summary, and an episode's files."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import display

from oh_jupyter.kernel.display.observations import picture_in_cell
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import bar_class
from oh_jupyter.kernel.magics.browse_completion import EVAL_OPTIONS
from oh_jupyter.kernel.magics.options import check_unknown_options

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from oh_jupyter.evaluation import Results, Trial

COLUMNS = ("task", "seed", "reward", "steps", "seconds", "error", "ended")
SUMMARY_COLUMNS = ("task", "solved", "of", "", "95 % interval", "steps", "seconds", "unfinished")
BAR_CHARS = 20
MAX_PICTURES = 20
PICTURE_WIDTH_PX = 480


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See %oh_browse eval --help")


def _parser() -> ArgumentParser:
    parser = _Parser(prog="%oh_browse eval", description=run_evaluation.__doc__, add_help=False)
    add = parser.add_argument
    add("tasks", nargs="*", help="names, or patterns such as oh_jupyter/click-*")
    add("--agent", help="function: gets an observation, returns an action; or an agent by name")
    add("--seeds", type=int, default=1, help="episodes of each task")
    add("--steps", type=int, default=10, help="actions that an episode may take")
    add("--workers", type=int, help="parallel episodes, each in its own process")
    add("--executor", help="variable with an executor, or a client of dask.distributed")
    add("--out", metavar="FILE.jsonl", help="file for results; existing ones are not repeated")
    add("--timeout", type=float, default=600.0, help="seconds that an episode may take")
    add("--trace", action="store_true", help="also record Playwright's traces")
    add("--headed", action="store_true", help="with a window to watch")
    add("-h", "--help", action="store_true", help="show this text")
    return parser


def run_evaluation(line: str, namespace: Mapping[str, Any]) -> Any:
    """Run tasks with your function as the agent, and show the results.

    ``eval show FILE.jsonl`` shows the results of a run, and ``eval show FILE.jsonl TASK SEED``
    the files of an episode.
    """
    parser = _parser()
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{str(error).lower()}: {line}") from None
    if words[:1] == ["show"]:
        return _show(words[1:])
    options, unknown = parser.parse_known_intermixed_args(words)
    check_unknown_options(unknown, EVAL_OPTIONS)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.help:
        return _print_help(parser)
    trials = []
    with closing(_trials(options, namespace)) as running:
        for trial in running:
            trials.append(trial)
    return _shown(trials)


def _print_help(parser: ArgumentParser) -> None:
    from oh_jupyter.browser.evaluation import TASKS

    print(parser.format_usage().strip())
    print("\n".join(f"  {name}" for name in TASKS))
    print("  repository/*: repositories with an issue, for agents that use the shell")
    print("  stateful/*: data work over several prompts; inspect/EVAL and harbor/FOLDER")
    print("With the extra eval also those of BrowserGym, such as browsergym/miniwob.click-*")
    print("%oh_browse eval show FILE.jsonl [TASK SEED]: the results of a run, or of an episode")


def _trials(options: Namespace, namespace: Mapping[str, Any]) -> Generator[Trial, None, None]:
    """Run the trials with a progress bar that counts solved and unfinished ones."""
    from IPython.core.getipython import get_ipython

    from oh_jupyter.browser.evaluation import Task
    from oh_jupyter.evaluation import PlayedTask, run_trials
    from oh_jupyter.evaluation.runner import find_tasks

    tasks: list[Any] = []
    for word in options.tasks or ["oh_jupyter/*"]:
        own = namespace.get(word)
        is_own = isinstance(own, Task | PlayedTask)
        tasks += [own] if is_own else find_tasks([word])
    trials = run_trials(
        tasks,
        _agent(options, namespace),
        seeds=options.seeds,
        steps=options.steps,
        workers=options.workers,
        executor=_executor(options, namespace),
        out=options.out,
        timeout=options.timeout,
        trace=options.trace,
        options={"headless": not options.headed},
    )
    solved = unfinished = 0
    total = len(tasks) * options.seeds
    with closing(trials), bar_class(get_ipython())(total=total, unit="episode") as bar:
        for trial in trials:
            solved += trial.solved
            unfinished += trial.ended != "finished"
            bar.set_postfix(solved=solved, unfinished=unfinished, refresh=False)
            bar.update()
            yield trial


def _agent(options: Namespace, namespace: Mapping[str, Any]) -> Any:
    from oh_jupyter.config import read_settings
    from oh_jupyter.errors import AgentError, EvaluationError
    from oh_jupyter.evaluation.agents_by_name import find_agent
    from oh_jupyter.trust import is_trusted

    if not options.agent:
        raise UsageError("name a function of yours: --agent my_agent")
    agent = namespace.get(options.agent)
    if callable(agent):
        return agent
    try:
        return find_agent(options.agent, read_settings(is_trusted=is_trusted)[0])
    except (AgentError, EvaluationError) as error:
        raise UsageError(
            f"there is no function {options.agent!r}: define the agent in a cell; it gets an "
            f"observation and returns an action. {error}"
        ) from None


def _executor(options: Namespace, namespace: Mapping[str, Any]) -> Executor | None:
    if not options.executor:
        return None
    from oh_jupyter.client.executor_starter import executor_of

    if options.executor not in namespace:
        raise UsageError(f"There is no variable {options.executor!r}.")
    return executor_of(namespace[options.executor])


def _shown(trials: Sequence[Trial]) -> Table:
    """Show the summary; return a table of all episodes."""
    print(f"{sum(trial.solved for trial in trials)} of {len(trials)} solved")
    if trials:
        display(_summary(trials))
    rows = [
        (t.task, t.seed, t.reward, t.steps, round(t.seconds, 1), t.error, t.ended) for t in trials
    ]
    return Table(COLUMNS, tuple(rows))


def _summary(trials: Sequence[Trial]) -> Table:
    """Return the figures of each task with a bar: full up to the interval, then shaded."""
    from oh_jupyter.evaluation import summarize

    rows = []
    for each in summarize(trials):
        low, high = round(each.low * BAR_CHARS), round(each.high * BAR_CHARS)
        bar = "█" * low + "▒" * (high - low) + "░" * (BAR_CHARS - high)
        interval = f"{each.low:.0%} to {each.high:.0%}"
        figures = (each.steps, each.seconds, each.unfinished)
        rows.append((each.task, each.solved, each.trials, bar, interval, *figures))
    return Table(SUMMARY_COLUMNS, tuple(rows))


def _show(words: list[str]) -> Any:
    from oh_jupyter.evaluation import Results

    if len(words) not in (1, 3) or (len(words) == 3 and not words[2].isdecimal()):
        raise UsageError("say which: %oh_browse eval show FILE.jsonl [TASK SEED]")
    results = Results(words[0])
    if len(words) == 1:
        trials = list(results.read().values())
        if not trials:
            raise UsageError(f"there are no results in {results.out}; see --out")
        return _shown(trials)
    trial = results.find(words[1], int(words[2]))
    if trial is None:
        raise UsageError(f"{words[0]} has no result of {words[1]} with seed {words[2]}")
    return _show_episode(results, trial)


def _show_episode(results: Results, trial: Trial) -> Table:
    """Show an episode's pictures and paths of its files; return its log."""
    paths = results.files(trial)
    print(f"{trial.task}, seed {trial.seed}: {trial.ended}, reward {trial.reward:g}", trial.error)
    for path in [path for path in paths if path.endswith(".png")][:MAX_PICTURES]:
        picture = results.store.read_bytes(path)
        display(picture_in_cell(picture, PICTURE_WIDTH_PX, path.rpartition("/")[2]))
    for path in paths:
        if not path.endswith(".png"):
            tool = "playwright show-trace " if path.endswith("trace.zip") else ""
            print(f"{tool}{results.store.get_absolute_path(path)}")
    rows = [
        (event.get("action") or event.get("observation"), event["message"])
        for event in results.events(trial)
    ]
    return Table(("event", "message"), tuple(rows))
