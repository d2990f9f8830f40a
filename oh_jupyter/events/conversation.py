"""What agents and people say and think between the Actions that do something, and tool calls.

Most of them are part of a session's log only. OpenHands' client makes tool calls itself;
a runtime here can carry them out, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from oh_jupyter.events.action import Action, ActionSecurityRisk

__all__ = ["AgentFinishAction", "AgentThinkAction", "MCPAction", "MessageAction", "NullAction"]


@dataclass
class MCPAction(Action):
    """Call a tool by its name.

    OpenHands' clients call MCP servers themselves and never send this one. Here a runtime
    carries it out, with its agent skills as tools.

    Attributes:
        name: The tool's name.
        arguments: Its arguments.
        thought: Why the agent does it.
        security_risk: The risk that the agent assigns.
    """

    kind: ClassVar[str] = "call_tool_mcp"

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN

    @property
    def message(self) -> str:
        """Name the tool."""
        return f"Calling the MCP tool: {self.name}"


@dataclass
class AgentThinkAction(Action):
    """A thought of the agent, kept in the log.

    Attributes:
        thought: The thought.
    """

    kind: ClassVar[str] = "think"
    runnable: ClassVar[bool] = False

    thought: str = ""

    @property
    def message(self) -> str:
        """Quote the thought."""
        return f"I am thinking...: {self.thought}"


@dataclass
class AgentFinishAction(Action):
    """The agent is done.

    Attributes:
        final_thought: What it has to say in the end.
        outputs: Anything else it returns.
        thought: Why it is done.
    """

    kind: ClassVar[str] = "finish"
    runnable: ClassVar[bool] = False

    final_thought: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    thought: str = ""

    @property
    def message(self) -> str:
        """Quote the last thought."""
        return self.thought or self.final_thought


@dataclass
class MessageAction(Action):
    """A message between person and agent.

    Attributes:
        content: The text.
        file_urls: Files that go with it.
        image_urls: Images that go with it.
        wait_for_response: Whether an answer is expected.
        security_risk: The risk that the agent assigns.
    """

    kind: ClassVar[str] = "message"
    runnable: ClassVar[bool] = False

    content: str
    file_urls: list[str] | None = None
    image_urls: list[str] | None = None
    wait_for_response: bool = False
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN

    @property
    def message(self) -> str:
        """The text itself."""
        return self.content


@dataclass
class NullAction(Action):
    """Nothing to do."""

    kind: ClassVar[str] = "null"
    runnable: ClassVar[bool] = False

    @property
    def message(self) -> str:
        """Say so."""
        return "No action"
