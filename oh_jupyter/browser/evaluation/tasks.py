"""Tasks that an agent is evaluated on: what a task is, and the small ones that come along.

A task sets a page up and says its goal; after each step it judges what was reached. It needs
no base class: any object with ``name``, ``setup`` and ``validate`` is one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oh_jupyter.browser.channel.protocol import GET_GOAL, GET_REWARDS
from oh_jupyter.browser.evaluation.gym_tasks import is_gym_task, list_tasks
from oh_jupyter.browser.evaluation.task_pages import PAGES
from oh_jupyter.errors import BrowserError

GoalPart = dict[str, Any]
"""A piece of a goal: ``{"type": "text", "text": …}`` or ``{"type": "image_url", "image_url": …}``,
where the last is an address or ``{"url": …}``."""


OUTCOME_SCRIPT = """said => {
  if (said.length && window.hear) hear(said.at(-1));
  return window.outcome;
}"""


class Verdict(NamedTuple):
    """What a task says after a step.

    Attributes:
        reward: What the step was worth; 1.0 for a task that is solved.
        done: Whether the task is over, solved or not.
        message: What the task's user says next, or "".
    """

    reward: float
    done: bool
    message: str = ""


class TaskPage(Protocol):
    """The page that a task sees."""

    def goto(self, url: str) -> None:
        """Open an address and wait until it is loaded."""

    def set_content(self, html: str) -> None:
        """Show a text as the page."""

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript, an expression or a function of one argument."""

    @property
    def url(self) -> str:
        """The address."""

    @property
    def text(self) -> str:
        """The text that a person sees."""


class RemoteTaskPage(TaskPage):
    """Page of a task in a worker, by a function that sends the worker's operations."""

    def __init__(self, request: Callable[..., Any]) -> None:
        self._request = request

    def goto(self, url: str) -> None:
        """Open an address."""
        self._request("load", url=url)

    def set_content(self, html: str) -> None:
        """Show HTML as the page."""
        self._request("load", html=html)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript."""
        return self._request("evaluate", expression=expression, argument=argument)

    @property
    def url(self) -> str:
        """The address."""
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        """The visible text."""
        return str(self.evaluate("document.documentElement.innerText"))


@runtime_checkable
class Task(Protocol):
    """A task."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    def setup(self, page: TaskPage, seed: int) -> str | list[GoalPart]:
        """Bring the page to where the task begins.

        Args:
            page: The page.
            seed: The same seed makes the same task.

        Returns:
            The goal, as text or as texts and images.
        """

    def validate(self, page: TaskPage, messages: list[dict[str, Any]]) -> Verdict:
        """Judge what was reached by the last step.

        Args:
            page: The page.
            messages: What the agent has said, as ``chat_messages`` of an observation.

        Returns:
            The verdict; a plain tuple of reward and done will do.
        """


@dataclass(frozen=True)
class PageTask:
    """A task whose page judges itself: it sets ``window.outcome`` to the reward."""

    name: str
    make: Callable[[random.Random], tuple[str, str]]

    def setup(self, page: TaskPage, seed: int) -> str:
        """Show the page."""
        goal, html = self.make(random.Random(f"{self.name} {seed}"))
        page.set_content(html)
        return goal

    def validate(self, page: TaskPage, messages: list[dict[str, Any]]) -> Verdict:
        """Ask the page."""
        said = [item["message"] for item in messages if item["role"] == "assistant"]
        outcome = page.evaluate(OUTCOME_SCRIPT, said)
        return Verdict(float(outcome or 0), outcome is not None)


TASKS: dict[str, PageTask] = {
    task.name: task
    for task in (PageTask(f"oh_jupyter/{make.__name__.replace('_', '-')}", make) for make in PAGES)
}
"""The tasks that come along, by name."""


def find_task(name: str) -> PageTask:
    """Find one of the tasks that come along."""
    task = TASKS.get(name) or TASKS.get(f"oh_jupyter/{name}")
    if task is None:
        near = get_close_matches(name, TASKS, cutoff=0.3)
        raise BrowserError(
            f"There is no task {name!r}. Near it: {', '.join(near) or ', '.join(TASKS)}. "
            "Tasks of BrowserGym begin with browsergym/."
        )
    return task


def match_tasks(patterns: Iterable[str]) -> list[str]:
    """Expand patterns such as ``oh_jupyter/click-*`` to names in order, each once."""
    names: dict[str, None] = {}
    for pattern in patterns:
        is_pattern = bool(set(pattern) & set("*?["))
        if is_gym_task(pattern):
            found = list_tasks(pattern) if is_pattern else [pattern]
        elif is_pattern:
            whole = pattern if "/" in pattern else f"oh_jupyter/{pattern}"
            found = [name for name in TASKS if fnmatchcase(name, whole)]
            if not found:
                raise BrowserError(f"No task matches {pattern!r}. Tasks: {', '.join(TASKS)}")
        else:
            found = [find_task(pattern).name]
        names.update(dict.fromkeys(found))
    return list(names)


class Evaluation:
    """An episode of a task."""

    def __init__(self, task: Task, seed: int, page: TaskPage) -> None:
        """Prepare; the task is set up by :meth:`begin`."""
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
        """The texts of the goal."""
        return "\n".join(part["text"] for part in self.goal_object if part["type"] == "text")

    @property
    def goal_images(self) -> list[str]:
        """The addresses of the goal's images."""
        return [
            url["url"] if isinstance(url, dict) else url
            for url in (part["image_url"] for part in self.goal_object if "image_url" in part)
        ]

    def begin(self) -> None:
        """Set the task up, once."""
        if self._is_set_up:
            return
        goal = self.task.setup(self._page, self._seed)
        self.goal_object = [{"type": "text", "text": goal}] if isinstance(goal, str) else list(goal)
        self._is_set_up = True

    def resume(self) -> None:
        """Set the task up again after its page was lost; the rewards so far stay."""
        self._is_set_up = False
        self.begin()

    def restart(self, task: Task, seed: int) -> None:
        """Begin a new episode."""
        self.task, self._seed = task, seed
        self.rewards, self.done, self._is_set_up, self._message = [], False, False, ""
        self.begin()

    def answer(self, action: str) -> dict[str, Any] | None:
        """Answer one of the special actions as an observation; None for all others."""
        if action.strip() == GET_GOAL:
            return answer_as_observation(action, self.goal, self.goal_images)
        if action.strip() == GET_REWARDS:
            return answer_as_observation(action, json.dumps(self.rewards))
        return None

    def judge(self, observation: dict[str, Any]) -> None:
        """Ask the task what a step was worth; its observation gets goal and verdict."""
        if not self.done:
            verdict = Verdict(*self.task.validate(self._page, observation["chat_messages"]))
            infeasible = any(m["role"] == "infeasible" for m in observation["chat_messages"])
            self.rewards.append(float(verdict.reward))
            self.done = bool(verdict.done) or infeasible
            self._message = verdict.message
        if self._message:
            said = {"role": "user", "timestamp": 0.0, "message": self._message}
            observation["chat_messages"] = [*observation["chat_messages"], said]
        observation["goal"] = self.goal
        observation["goal_object"] = list(self.goal_object)
        observation["image_content"] = self.goal_images


def answer_as_observation(
    action: str, text: str, images: list[str] | None = None
) -> dict[str, Any]:
    """Return an observation of no page, with an answer as its text."""
    return {
        "url": "", "open_pages_urls": [], "open_pages_titles": [], "active_page_index": -1,
        "screenshot": "", "set_of_marks": "", "dom_object": {}, "axtree_object": {"nodes": []},
        "extra_element_properties": {}, "focused_element_bid": "", "text_content": text,
        "image_content": images or [], "goal": "", "goal_object": [], "chat_messages": [],
        "last_action": action, "last_action_error": "", "elapsed_time": 0.0, "notices": [],
        "downloads": [],
    }  # fmt: skip
