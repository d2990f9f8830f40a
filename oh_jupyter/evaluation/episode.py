"""An episode: one agent, one task, one seed; its files and its result."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from oh_jupyter.events import Event
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.wire import to_wire

Agent = Callable[[dict[str, Any]], Any]
"""Maps an observation, with ``goal``, to the next action; "" or None gives up."""

EVENTS_FILE = "events.jsonl"


@dataclass(frozen=True)
class Trial:
    """Result of one episode.

    Attributes:
        task: The task's name.
        seed: Seed of its random choices.
        reward: The sum of the rewards.
        steps: Number of actions.
        seconds: Duration.
        error: Why it ended early, the last action's error, or "".
        ended: ``finished``, with any reward; ``deadline`` if it was stopped at its deadline;
            ``died`` if its process or its worker died.
        finished_at: Time of the end, as ISO 8601 in UTC.
        measures: Further figures of a task, by name, such as ``calls``.
    """

    task: str
    seed: int
    reward: float
    steps: int
    seconds: float
    error: str = ""
    ended: Literal["finished", "deadline", "died"] = "finished"
    finished_at: str = ""
    measures: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def solved(self) -> bool:
        """Whether the reward is positive."""
        return self.reward > 0


class Outcome(NamedTuple):
    """A task's verdict on an episode: reward, number of steps, error, and further figures."""

    reward: float
    steps: int
    error: str = ""
    measures: Mapping[str, float] = {}


class EpisodeLog:
    """Folder of an episode's files, which are stored at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def event(self, event: Event) -> None:
        """Append an Action or Observation."""
        with self.path(EVENTS_FILE).open("ab") as file:
            file.write(encode_json(to_wire(event)) + b"\n")

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder."""
        return self.folder / name


@runtime_checkable
class PlayedTask(Protocol):
    """A task without a browser, which runs its episodes itself."""

    @property
    def name(self) -> str:
        """Name in tables."""

    def play(self, agent: Agent, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        """Let an agent try the task.

        Args:
            agent: The agent.
            seed: Seed of the task's random choices.
            steps: Maximum number of actions.
            log: Receives events and files of the episode; None to drop them.

        Returns:
            The outcome.
        """


class AgentLabAgent:
    """An agent of AgentLab, created in each episode's process."""

    def __init__(self, agent_args: Any) -> None:
        """Wrap an agent, which is created at the first observation.

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
        """Return the arguments that create the agent in an episode's process."""
        return {"agent_args": self.agent_args, "_agent": None}


def _pixels(data_url: str) -> Any:
    """Return a screenshot as an array of pixels, as in BrowserGym."""
    import numpy
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2])))
    return numpy.array(picture.convert("RGB"))
