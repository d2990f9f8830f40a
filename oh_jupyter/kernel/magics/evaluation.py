"""``%oh_browse eval``: an agent's trials, with a bar while they run and a table at the end."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import ProgressBar

from oh_jupyter.kernel.display.table import Table

__all__ = ["run_evaluation"]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See %oh_browse eval --help")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"invalid int value: {text!r}; it is 1 or more")
    return int(text)


def _parser() -> ArgumentParser:
    parser = _Parser(prog="%oh_browse eval", description=run_evaluation.__doc__, add_help=False)
    parser.add_argument("tasks", nargs="*", help="names, or patterns such as oh_jupyter/click-*")
    parser.add_argument("--agent", help="function: gets an observation, returns an action")
    parser.add_argument("--seeds", type=_count, default=1, help="episodes of each task")
    parser.add_argument("--steps", type=_count, default=10, help="actions that an episode may take")
    parser.add_argument("--headed", action="store_true", help="with a window to watch")
    parser.add_argument("-h", "--help", action="store_true", help="show this text")
    return parser


def run_evaluation(line: str, namespace: Mapping[str, Any]) -> Table | None:
    """Let a function of yours try tasks, and show what came of it."""
    from oh_jupyter.browser.evaluation.tasks import TASKS, Task, match_tasks
    from oh_jupyter.browser.evaluation_runner import Trial, run_trials

    parser = _parser()
    try:
        options = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{str(error).lower()}: {line}") from None
    if options.help:
        print(parser.format_usage().strip())
        print("\n".join(f"  {name}" for name in TASKS))
        print("With the extra eval also those of BrowserGym, such as browsergym/miniwob.click-*")
        return None
    tasks: list[Any] = []
    for word in options.tasks or ["oh_jupyter/*"]:
        own = namespace.get(word)
        tasks += [own] if isinstance(own, Task) else match_tasks([word])
    agent = _agent(options, namespace)
    bar = ProgressBar(len(tasks) * options.seeds)
    bar.display()
    trials: list[Trial] = []
    settings = {"headless": not options.headed}
    for trial in run_trials(
        tasks, agent, seeds=options.seeds, steps=options.steps, options=settings
    ):
        trials.append(trial)
        bar.progress = len(trials)
    solved = sum(trial.reward > 0 for trial in trials)
    print(f"{solved} of {len(trials)} solved")
    rows = tuple((t.task, t.seed, t.reward, t.steps, round(t.seconds, 1), t.error) for t in trials)
    return Table(("task", "seed", "reward", "steps", "seconds", "error"), rows)


def _agent(options: Namespace, namespace: Mapping[str, Any]) -> Any:
    if not options.agent:
        raise UsageError("name a function of yours: --agent my_agent")
    agent = namespace.get(options.agent)
    if not callable(agent):
        raise UsageError(
            f"there is no function {options.agent!r} to be the agent: define it in a cell; it gets "
            "an observation and returns an action"
        )
    return agent
