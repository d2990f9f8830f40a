"""Agents by name: the scripted one, functions of modules, agents of the settings, commands."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from typing import Any

from oh_jupyter.agents.commands import known_agents
from oh_jupyter.config import Settings
from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.command_agent import CommandAgent
from oh_jupyter.evaluation.episode import Agent
from oh_jupyter.evaluation.harness_task import HARNESSES, HarnessAgent
from oh_jupyter.evaluation.stateful import ScriptedAgent
from oh_jupyter.import_guard import importing_from_workspace
from oh_jupyter.installed import find_program

SCRIPTED = "scripted"


def find_agent(name: str, settings: Settings) -> Agent:
    """Return an agent by its name, or raise EvaluationError.

    A name is ``scripted``, ``inspect:MODEL``, ``harbor:AGENT``, a function as ``module:function``,
    an agent of the setting ``agents`` or of those that are known, or a command line.
    """
    if name == SCRIPTED:
        return ScriptedAgent()
    harness, _, rest = name.partition(":")
    if harness in HARNESSES and rest:
        return HarnessAgent(harness, rest)
    agents = known_agents(settings.agents)
    if name in agents:
        from oh_jupyter.evaluation.acp_agent import AcpAgent

        agents[name].arguments()  # reports a missing program before an episode starts
        return AcpAgent(agents[name])
    words = shlex.split(name)
    if words and find_program(words[0]):
        return CommandAgent(words)
    if rest and " " not in name:
        return _imported(harness, rest)
    raise EvaluationError(
        f"There is no agent {name!r}. Name one of {SCRIPTED}, {', '.join(agents)}; a function as "
        "module:function; a command that reads observations and writes actions; or, for tasks of "
        "Inspect and Harbor, inspect:MODEL or harbor:AGENT"
    )


def _imported(module: str, function: str) -> Agent:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with importing_from_workspace():
            agent: Any = getattr(importlib.import_module(module), function)
    except Exception as error:  # a module may fail in any way
        raise EvaluationError(
            f"The agent {module}:{function} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(agent):
        raise EvaluationError(f"The agent {module}:{function} is {agent!r}, which is no function")
    loaded: Agent = agent() if isinstance(agent, type) else agent
    return loaded
