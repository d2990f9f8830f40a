"""AgentLab's agents as agents of ours."""

from __future__ import annotations

import base64
import io
from typing import Any

__all__ = ["AgentLabAgent"]


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
