"""Plugins: named parts of the runtime, each started once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class PluginRequirement:
    """Requirement of a plugin by name, as in an agent's configuration.

    Attributes:
        name: The plugin's name in ``ALL_PLUGINS``.
        documentation: Text about the plugin for agents.
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
            username: Name of the runtime's user.

        Raises:
            PluginError: It cannot start here.
        """

    async def close(self) -> None:
        """Stop the plugin; does nothing by default."""
        return None
