"""A runtime, and agents that are real processes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from oh_jupyter.agents import AgentTurn, GuestAgents
from oh_jupyter.config import Settings
from oh_jupyter.runtime import Runtime

SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
BROKEN = Path(__file__).with_name("broken_agent.py")


def command(script: Path, *arguments: str) -> str:
    return shlex.join([sys.executable, str(script), *arguments])


class Guests:
    """A runtime with its agents, called from the test's thread."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        agents = {"scripted": command(SCRIPTED)} | settings.pop("agents", {})
        self.folder = folder
        self.runtime = Runtime(
            Settings(workspace_dir=str(folder), file_store="memory", agents=agents, **settings)
        )
        self.agents = self.runtime.submit(self._make()).result(60)

    async def _make(self) -> GuestAgents:
        return GuestAgents(self.runtime.executor)

    def prompt(self, text: str, agent: str | None = "scripted", **options: Any) -> AgentTurn:
        return self.start(text, agent, **options).result(120)

    def start(self, text: str, agent: str | None = "scripted", **options: Any) -> Any:
        return self.runtime.submit(self.agents.prompt(text, agent, **options))

    def call(self, coroutine: Any) -> Any:
        return self.runtime.submit(coroutine).result(60)

    def log(self) -> list[Any]:
        self.runtime.events.flush()
        return list(self.runtime.events.search())
