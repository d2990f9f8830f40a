"""One task, carried out by an agent, and judged after each of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.evaluation.tasks import GoalPart, Task, TaskPage, Verdict

if TYPE_CHECKING:
    from oh_jupyter.browser.env import BrowserEnv

__all__ = ["GOAL", "REWARDS", "Evaluation", "answer_as_observation"]

GOAL, REWARDS = "GET_EVAL_GOAL", "GET_EVAL_REWARDS"
"""Actions of OpenHands' evaluation that ask for the goal and for the rewards so far."""


class Evaluation:
    """An episode of a task.

    Attributes:
        task: The task.
        goal_object: The goal, as a list of texts and images.
        rewards: The reward of each step so far.
        done: Whether the task says that it is over.
    """

    def __init__(self, task: Task, seed: int, env: BrowserEnv) -> None:
        """Prepare; the task is set up by :meth:`begin`.

        Args:
            task: The task.
            seed: What its random choices begin with.
            env: The browser.
        """
        self.task = task
        self.goal_object: list[GoalPart] = []
        self.rewards: list[float] = []
        self.done = False
        self._seed = seed
        self._page = _EnvPage(env)
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
        """Begin a new episode.

        Args:
            task: The task.
            seed: What its random choices begin with.
        """
        self.task, self._seed = task, seed
        self.rewards, self.done, self._is_set_up, self._message = [], False, False, ""
        self.begin()

    def judge(self, observation: dict[str, Any]) -> None:
        """Ask the task what a step was worth, and say so in the observation.

        Args:
            observation: What came of the step; it gets the goal and the task's words.
        """
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


class _EnvPage(TaskPage):
    """The page of a task, reached through a BrowserEnv."""

    def __init__(self, env: BrowserEnv) -> None:
        self._env = env

    def goto(self, url: str) -> None:
        self._env._ask("load", url=url)

    def set_content(self, html: str) -> None:
        self._env._ask("load", html=html)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        return self._env.evaluate(expression, argument)

    @property
    def url(self) -> str:
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        return str(self.evaluate("document.documentElement.innerText"))


def answer_as_observation(
    action: str, text: str, images: list[str] | None = None
) -> dict[str, Any]:
    """Answer one of the special actions.

    Args:
        action: The action.
        text: The answer.
        images: Addresses of images that belong to it.

    Returns:
        An observation of no page, with the answer as its text.
    """
    return {
        "url": "", "open_pages_urls": [], "open_pages_titles": [], "active_page_index": -1,
        "screenshot": "", "set_of_marks": "", "dom_object": {}, "axtree_object": {"nodes": []},
        "extra_element_properties": {}, "focused_element_bid": "", "text_content": text,
        "image_content": images or [], "goal": "", "goal_object": [], "chat_messages": [],
        "last_action": action, "last_action_error": "", "elapsed_time": 0.0, "notices": [],
        "downloads": [],
    }  # fmt: skip
