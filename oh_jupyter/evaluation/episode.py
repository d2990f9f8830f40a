"""An episode: one agent at one task with one seed, what it leaves behind, and its result."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from oh_jupyter.events import Event
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.wire import to_wire

Agent = Callable[[dict[str, Any]], Any]
"""Gets an observation, with ``goal``, and returns the next action; "" or None to give up."""

EVENTS_FILE = "events.jsonl"


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
        ended: ``finished``, whatever its reward; ``deadline``, as it took too long and was ended;
            ``died``, as its process or the worker below it did.
        finished_at: When, as ISO 8601 in UTC.
    """

    task: str
    seed: int
    reward: float
    steps: int
    seconds: float
    error: str = ""
    ended: Literal["finished", "deadline", "died"] = "finished"
    finished_at: str = ""

    @property
    def solved(self) -> bool:
        """Whether the task was worth anything in the end."""
        return self.reward > 0


class Outcome(NamedTuple):
    """What a task says at the end of an episode: its reward, the steps, and what went wrong."""

    reward: float
    steps: int
    error: str = ""


class EpisodeLog:
    """Files of an episode in a folder of its own; what is in it survives the episode's end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def event(self, event: Event) -> None:
        """Append an Action or Observation."""
        with self.path(EVENTS_FILE).open("ab") as file:
            file.write(encode_json(to_wire(event)) + b"\n")

    def path(self, name: str) -> Path:
        """Where a file of that name belongs."""
        return self.folder / name


@runtime_checkable
class PlayedTask(Protocol):
    """A task that needs no browser: it carries its episodes out itself."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    def play(self, agent: Agent, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        """Let an agent try.

        Args:
            agent: The agent.
            seed: The same seed makes the same task.
            steps: Actions that the agent may take.
            log: Where events and files of the episode go; None if nobody keeps them.

        Returns:
            What came of it.
        """


class AgentLabAgent:
    """An agent of AgentLab, made anew for each episode's process."""

    def __init__(self, agent_args: Any) -> None:
        """Wrap it; it is made at the first observation.

        Args:
            agent_args: An ``AgentArgs`` of AgentLab, such as ``GenericAgentArgs(…)``.
        """
        self.agent_args = agent_args
        self._agent: Any = None

    def __call__(self, observation: dict[str, Any]) -> str:
        """Return the next action, "" to give up."""
        if self._agent is None:
            self.agent_args.prepare()
            self._agent = self.agent_args.make_agent()
        seen = {**observation, "screenshot": _pixels(observation["screenshot"])}
        action, _ = self._agent.get_action(self._agent.obs_preprocessor(seen))
        return action or ""

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to an episode's process: how to make it."""
        return {"agent_args": self.agent_args, "_agent": None}


def _pixels(data_url: str) -> Any:
    """A screenshot as BrowserGym gives it."""
    import numpy
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2])))
    return numpy.array(picture.convert("RGB"))
