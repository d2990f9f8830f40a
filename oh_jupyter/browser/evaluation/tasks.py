"""Interface of browser tasks, the included tasks, and their evaluation.

A task sets up a page and returns its goal. After each step, it judges the result. Any object with
``name``, ``setup`` and ``validate`` is a task; there is no base class.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oh_jupyter.browser.channel.pipe import GET_GOAL, GET_REWARDS
from oh_jupyter.browser.evaluation.gym_tasks import is_gym_task, list_tasks
from oh_jupyter.browser.evaluation.task_pages import PAGES
from oh_jupyter.errors import BrowserError

GoalPart = dict[str, Any]
"""Part of a goal: ``{"type": "text", "text": …}`` or ``{"type": "image_url", "image_url": …}``,
whose last value is a URL or ``{"url": …}``."""


OUTCOME_SCRIPT = """messages => {
  if (messages.length && window.hear) hear(messages.at(-1));
  return window.outcome;
}"""


class Verdict(NamedTuple):
    """Judgement of a task after a step.

    Attributes:
        reward: Reward of the step; 1.0 if the task is solved.
        done: Whether the task has ended, solved or not.
        message: Next message of the task's user, or "".
    """

    reward: float
    done: bool
    message: str = ""


class TaskPage(Protocol):
    """Interface through which a task uses its page."""

    def goto(self, url: str) -> None:
        """Open a URL and wait until it is loaded."""

    def set_content(self, html: str) -> None:
        """Show HTML as the page."""

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript, an expression or a function of one argument."""

    @property
    def url(self) -> str:
        """URL of the page."""

    @property
    def text(self) -> str:
        """Visible text."""


class RemoteTaskPage(TaskPage):
    """Page in a worker, which a function sends requests to."""

    def __init__(self, request: Callable[..., Any]) -> None:
        self._request = request

    def goto(self, url: str) -> None:
        """Open a URL."""
        self._request("load", url=url)

    def set_content(self, html: str) -> None:
        """Show HTML as the page."""
        self._request("load", html=html)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript."""
        return self._request("evaluate", expression=expression, argument=argument)

    @property
    def url(self) -> str:
        """URL of the page."""
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        """Visible text."""
        return str(self.evaluate("document.documentElement.innerText"))


@runtime_checkable
class Task(Protocol):
    """Interface of a task."""

    @property
    def name(self) -> str:
        """Name for tables."""

    def setup(self, page: TaskPage, seed: int) -> str | list[GoalPart]:
        """Bring the page to the start of the task.

        Args:
            page: The page.
            seed: Seed of random choices; the same seed produces the same task.

        Returns:
            The goal, as text or as texts and images.
        """

    def validate(self, page: TaskPage, messages: list[dict[str, Any]]) -> Verdict:
        """Judge the result of the last step.

        Args:
            page: The page.
            messages: Messages of the agent, as ``chat_messages`` of an observation.

        Returns:
            The verdict; a plain tuple of reward and done is enough.
        """


@dataclass(frozen=True)
class PageTask:
    """Task whose page sets ``window.outcome`` to the reward."""

    name: str
    make: Callable[[random.Random], tuple[str, str]]

    def setup(self, page: TaskPage, seed: int) -> str:
        """Show the page."""
        goal, html = self.make(random.Random(f"{self.name} {seed}"))
        page.set_content(html)
        return goal

    def validate(self, page: TaskPage, messages: list[dict[str, Any]]) -> Verdict:
        """Read the outcome from the page."""
        texts = [item["message"] for item in messages if item["role"] == "assistant"]
        outcome = page.evaluate(OUTCOME_SCRIPT, texts)
        return Verdict(float(outcome or 0), outcome is not None)


TASKS: dict[str, PageTask] = {
    task.name: task
    for task in (PageTask(f"oh_jupyter/{make.__name__.replace('_', '-')}", make) for make in PAGES)
}
"""Included tasks by name."""


def find_task(name: str) -> PageTask:
    """Return an included task."""
    task = TASKS.get(name) or TASKS.get(f"oh_jupyter/{name}")
    if task is None:
        matches = get_close_matches(name, TASKS, cutoff=0.3)
        raise BrowserError(
            f"There is no task {name!r}. Similar names: {', '.join(matches or TASKS)}. "
            "Names of BrowserGym tasks begin with browsergym/."
        )
    return task


def match_tasks(patterns: Iterable[str]) -> list[str]:
    """Expand patterns such as ``oh_jupyter/click-*`` to names in order, without duplicates."""
    names: dict[str, None] = {}
    for pattern in patterns:
        is_pattern = bool(set(pattern) & set("*?["))
        if is_gym_task(pattern):
            matches = list_tasks(pattern) if is_pattern else [pattern]
        elif is_pattern:
            full_pattern = pattern if "/" in pattern else f"oh_jupyter/{pattern}"
            matches = [name for name in TASKS if fnmatchcase(name, full_pattern)]
            if not matches:
                raise BrowserError(f"No task matches {pattern!r}. Tasks: {', '.join(TASKS)}")
        else:
            matches = [find_task(pattern).name]
        names.update(dict.fromkeys(matches))
    return list(names)


class Evaluation:
    """Episode of a task."""

    def __init__(self, task: Task, seed: int, page: TaskPage) -> None:
        """Prepare an episode; :meth:`begin` sets up the task."""
        self.task = task
        self.goal_object: list[GoalPart] = []
        self.rewards: list[float] = []
        self.done = False
        self._seed = seed
        self._page = page
        self._is_set_up = False
        self._message = ""

    @property
    def goal(self) -> str:
        """Text of the goal."""
        return "\n".join(part["text"] for part in self.goal_object if part["type"] == "text")

    @property
    def goal_images(self) -> list[str]:
        """URLs of the goal's images."""
        return [
            url["url"] if isinstance(url, dict) else url
            for url in (part["image_url"] for part in self.goal_object if "image_url" in part)
        ]

    def begin(self) -> None:
        """Set up the task unless this is already done."""
        if self._is_set_up:
            return
        goal = self.task.setup(self._page, self._seed)
        self.goal_object = [{"type": "text", "text": goal}] if isinstance(goal, str) else list(goal)
        self._is_set_up = True

    def resume(self) -> None:
        """Set up the task again after its page was lost; keep the rewards."""
        self._is_set_up = False
        self.begin()

    def restart(self, task: Task, seed: int) -> None:
        """Start a new episode."""
        self.task, self._seed = task, seed
        self.rewards, self.done, self._is_set_up, self._message = [], False, False, ""
        self.begin()

    def answer(self, action: str) -> dict[str, Any] | None:
        """Return the observation of a special action, or None for all other actions."""
        if action.strip() == GET_GOAL:
            return text_observation(action, self.goal, self.goal_images)
        if action.strip() == GET_REWARDS:
            return text_observation(action, json.dumps(self.rewards))
        return None

    def judge(self, observation: dict[str, Any]) -> None:
        """Let the task judge a step; add the goal and the task's message to the observation."""
        if not self.done:
            verdict = Verdict(*self.task.validate(self._page, observation["chat_messages"]))
            infeasible = any(m["role"] == "infeasible" for m in observation["chat_messages"])
            self.rewards.append(float(verdict.reward))
            self.done = bool(verdict.done) or infeasible
            self._message = verdict.message
        if self._message:
            message = {"role": "user", "timestamp": 0.0, "message": self._message}
            observation["chat_messages"] = [*observation["chat_messages"], message]
        observation["goal"] = self.goal
        observation["goal_object"] = list(self.goal_object)
        observation["image_content"] = self.goal_images


def text_observation(action: str, text: str, images: list[str] | None = None) -> dict[str, Any]:
    """Return an observation that contains only a text, without a page."""
    return {
        "url": "", "open_pages_urls": [], "open_pages_titles": [], "active_page_index": -1,
        "screenshot": "", "set_of_marks": "", "dom_object": {}, "axtree_object": {"nodes": []},
        "extra_element_properties": {}, "focused_element_bid": "", "text_content": text,
        "image_content": images or [], "goal": "", "goal_object": [], "chat_messages": [],
        "last_action": action, "last_action_error": "", "elapsed_time": 0.0, "notices": [],
        "downloads": [],
    }  # fmt: skip
