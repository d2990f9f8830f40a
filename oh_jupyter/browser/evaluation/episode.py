"""One task, carried out by an agent, and judged after each of its steps."""

from __future__ import annotations

import json
from typing import Any

from oh_jupyter.browser.channel.protocol import GET_GOAL, GET_REWARDS
from oh_jupyter.browser.evaluation.tasks import GoalPart, Task, TaskPage, Verdict

__all__ = ["Evaluation", "answer_as_observation"]


class Evaluation:
    """An episode of a task.

    Attributes:
        task: The task.
        goal_object: The goal, as a list of texts and images.
        rewards: The reward of each step so far.
        done: Whether the task says that it is over.
    """

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
