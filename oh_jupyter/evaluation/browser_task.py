"""Episodes in a browser: built-in tasks, the user's tasks, and those of BrowserGym."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.channel.pipe import GET_GOAL, GET_REWARDS
from oh_jupyter.browser.evaluation import Task
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, Outcome
from oh_jupyter.events import BrowseInteractiveAction, BrowserOutputObservation

TRACE_FILE = "trace.zip"


class Browsers:
    """One browser for tasks of this package and one for BrowserGym's, since a start is slow."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._ours: BrowserEnv | None = None
        self._gym: BrowserEnv | None = None

    def begin(self, task: str | Task, seed: int) -> BrowserEnv:
        """Set up a task; a string is the name of a BrowserGym task."""
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
        """Close the browsers."""
        for env in (self._ours, self._gym):
            if env is not None:
                env.close()


def play_in_browser(
    env: BrowserEnv, agent: Agent, *, steps: int, log: EpisodeLog | None, trace: bool
) -> Outcome:
    """Let an agent try the task that has been set up."""
    is_traced = trace and log is not None and env.evaluation is not None
    with env.trace(log.path(TRACE_FILE)) if is_traced and log else nullcontext():
        goal = env.step(GET_GOAL)
        observation = env.step("noop(0)")
        taken, error_text = 0, ""
        _record(log, observation, taken)
        while taken < steps and not _is_done(env, observation):
            observation["goal"] = observation["goal"] or goal["text_content"]
            try:
                action = agent(observation)
            except (
                Exception
            ) as error:  # an agent may fail in any way; the next episode is unaffected
                error_text = f"{type(error).__name__}: {error}"
                break
            if not action:
                break
            if log is not None:
                log.event(BrowseInteractiveAction(action))
            observation = env.step(action)
            taken += 1
            _record(log, observation, taken)
            error_text = observation["last_action_error"].partition("\n")[0]
        rewards = json.loads(env.step(GET_REWARDS)["text_content"])
    return Outcome(sum(rewards), taken, error_text)


def _is_done(env: BrowserEnv, observation: Mapping[str, Any]) -> bool:
    return env.evaluation.done if env.evaluation is not None else observation.get("done", False)


def _record(log: EpisodeLog | None, observation: Mapping[str, Any], number: int) -> None:
    """Record an observation: the screenshot as a file, the rest as an event."""
    if log is None:
        return
    picture = log.path(f"{number:03}.png")
    picture.write_bytes(base64.b64decode(observation["screenshot"].partition(",")[2]))
    log.event(
        BrowserOutputObservation(
            content=observation["text_content"],
            url=observation["url"],
            trigger_by_action="browse_interactive",
            screenshot_path=picture.name,
            error=bool(observation["last_action_error"]),
            last_browser_action=observation["last_action"],
            last_browser_action_error=observation["last_action_error"],
        )
    )
