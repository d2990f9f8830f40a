"""What a plugin is: something with a name that starts once and may run Actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from oh_jupyter.errors import PluginError
from oh_jupyter.events import Action, Observation

__all__ = ["Plugin", "PluginRequirement"]


@dataclass(frozen=True)
class PluginRequirement:
    """Asks for a plugin by name, as an agent's configuration does.

    Attributes:
        name: The plugin's name in ``ALL_PLUGINS``.
        documentation: What an agent is told about it.
    """

    name: str
    documentation: str = ""


class Plugin(ABC):
    """A part of the runtime that is loaded by name."""

    name: ClassVar[str]

    @abstractmethod
    async def initialize(self, username: str) -> None:
        """Start the plugin.

        Args:
            username: The user that the runtime works for.

        Raises:
            PluginError: It cannot start here.
        """

    async def run(self, action: Action) -> Observation:
        """Carry out an Action.

        Args:
            action: The Action.

        Returns:
            Its Observation.

        Raises:
            PluginError: The plugin runs no Actions of this type.
        """
        raise PluginError(f"The plugin {self.name!r} does not run {action.kind!r} actions")

    async def close(self) -> None:
        """Stop what was started. The default has nothing to stop."""
        return None
