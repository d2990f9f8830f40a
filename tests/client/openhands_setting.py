"""Setup of the checks against OpenHands 0.62: the server, and OpenHands' own client."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openhands.agenthub  # noqa: F401 - it registers the agents
from openhands.core.config import OpenHandsConfig
from openhands.events import EventStream
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient
from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement
from openhands.storage import get_file_store

URL, TOKEN, PLACE, MCP_COMMAND, RESULTS = sys.argv[1:6]
WORK = Path(PLACE)
EXAMPLE = "openhands_runtime.JupyterRuntime"
CHECKS: list[Callable[[], None]] = []


def refused(act: Callable[[], Any], kind: type[Exception]) -> str:
    """Return the message of the error that a call raises."""
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


class Client(ActionExecutionClient):
    """OpenHands' client, with an address and nothing else."""

    url = URL

    @property
    def action_execution_server_url(self) -> str:
        return self.url

    @property
    def session_api_key(self) -> str | None:
        return os.environ.get("SESSION_API_KEY")

    async def connect(self) -> None:
        self.check_if_alive()
        self.setup_initial_env()
        self._runtime_initialized = True


def configuration() -> OpenHandsConfig:
    config = OpenHandsConfig()
    config.file_store_path = str(WORK / "openhands")
    config.workspace_mount_path_in_sandbox = str(WORK)
    config.sandbox.timeout = 60
    return config


def runtime(cls: type[Any] = Client, sid: str = "checks", **changes: Any) -> Any:
    config = changes.pop("config", None) or configuration()
    stream = EventStream(sid, get_file_store("local", config.file_store_path))
    plugins = [AgentSkillsRequirement(), JupyterRequirement()]
    made = cls(config, stream, LLMRegistry(config), sid, plugins, **changes)
    if issubclass(cls, Client):
        made.session.headers["X-Session-API-Key"] = made.session_api_key
    return made
