"""What a plugin is: a part of the runtime with a name, which starts once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


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

    async def close(self) -> None:
        """Stop what was started. The default has nothing to stop."""
        return None
