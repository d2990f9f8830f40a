"""An agent's trials on a set of tasks: episode after episode, each with its result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oh_jupyter.browser.channel.protocol import GET_GOAL, GET_REWARDS
from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.browser.evaluation.gym_tasks import is_gym_task
from oh_jupyter.browser.evaluation.tasks import Task, find_task
from oh_jupyter.errors import BrowserError

__all__ = ["Agent", "Trial", "run_trials"]

Agent = Callable[[dict[str, Any]], str]
"""Gets an observation, with ``goal``, and returns the next action; "" or None to give up."""


@dataclass(frozen=True)
class Trial:
    """What came of one episode.

    Attributes:
        task: The task's name.
        seed: What its random choices began with.
        reward: The sum of the rewards.
        steps: How many actions were taken.
        seconds: How long it took.
        error: Why it ended early, or the last action's error, or "".
    """

    task: str
    seed: int
    reward: float
    steps: int
    seconds: float
    error: str = ""


def run_trials(
    tasks: Sequence[str | Task],
    agent: Agent,
    *,
    seeds: int = 1,
    steps: int = 10,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Trial]:
    """Let an agent try tasks.

    Args:
        tasks: Names, or task objects.
        agent: The agent.
        seeds: How many episodes of each task, with the seeds 0, 1, …
        steps: Actions that an episode may take.
        options: Arguments for :class:`BrowserEnv`.

    Yields:
        The result of each episode, as it ends.
    """
    tried = [t if is_gym_task(t) or not isinstance(t, str) else find_task(t) for t in tasks]
    browsers = _Browsers(options or {})
    try:
        for task in tried:
            for seed in range(seeds):
                name = task if isinstance(task, str) else task.name
                start = time.monotonic()
                try:
                    figures = _episode(browsers.begin(task, seed), agent, steps)
                except BrowserError as error:
                    figures = (0.0, 0, str(error))
                yield Trial(
                    name, seed, figures[0], figures[1], time.monotonic() - start, figures[2]
                )
    finally:
        browsers.close()


class _Browsers:
    """One browser for all tasks of ours and one for all of BrowserGym's.

    Starting costs more than most tasks.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._ours: BrowserEnv | None = None
        self._gym: BrowserEnv | None = None

    def begin(self, task: str | Task, seed: int) -> BrowserEnv:
        """Set a task up; a task's name is one of BrowserGym's."""
        if isinstance(task, str):
            if self._gym is None:
                self._gym = BrowserEnv(task, seed=seed, **self._options)
            else:
                self._gym.begin_task(task, seed)
            return self._gym
        if self._ours is None:
            self._ours = BrowserEnv(task, **self._options)
        self._ours.begin_task(task, seed)
        return self._ours

    def close(self) -> None:
        for env in (self._ours, self._gym):
            if env is not None:
                env.close()


def _episode(env: BrowserEnv, agent: Agent, steps: int) -> tuple[float, int, str]:
    """Carry out one episode; its reward, how many steps, and what went wrong."""
    goal = env.step(GET_GOAL)
    observation = env.step("noop(0)")
    taken, problem = 0, ""
    while taken < steps and not _is_done(env, observation):
        observation["goal"] = observation["goal"] or goal["text_content"]
        try:
            action = agent(observation)
        except Exception as error:  # whatever an agent does; the next episode is another one
            problem = f"{type(error).__name__}: {error}"
            break
        if not action:
            break
        observation = env.step(action)
        taken += 1
        problem = observation["last_action_error"].partition("\n")[0]
    return sum(json.loads(env.step(GET_REWARDS)["text_content"])), taken, problem


def _is_done(env: BrowserEnv, observation: Mapping[str, Any]) -> bool:
    return env.evaluation.done if env.evaluation is not None else observation.get("done", False)
