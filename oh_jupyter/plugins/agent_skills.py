"""Agent skills: plain functions that an agent's cells find in their namespace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from oh_jupyter.plugins.base import Plugin, PluginRequirement

__all__ = ["AgentSkillsPlugin", "AgentSkillsRequirement"]


def _skills_documentation() -> str:
    from oh_jupyter.skills import documentation

    return documentation()


@dataclass(frozen=True)
class AgentSkillsRequirement(PluginRequirement):
    """Asks for the agent skills; its documentation is generated from those available."""

    name: str = "agent_skills"
    documentation: str = field(default_factory=_skills_documentation)


class AgentSkillsPlugin(Plugin):
    """Makes the skills available to cells.

    Attributes:
        cell_code: The cell that brings them in. A name that the person already uses
            stays as it is: the kernel is shared.
    """

    name: ClassVar[str] = "agent_skills"

    cell_code: ClassVar[str] = (
        "import oh_jupyter.skills as _oh_skills\n"
        "for _oh_name, _oh_function in _oh_skills.available().items():\n"
        "    globals().setdefault(_oh_name, _oh_function)\n"
        "del _oh_skills, _oh_name, _oh_function"
    )

    async def initialize(self, username: str) -> None:
        """Nothing to start: the executor runs ``cell_code`` once both plugins are there."""
