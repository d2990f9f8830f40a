"""Coding agents as guests of the runtime, over the Agent Client Protocol."""

from oh_jupyter.agents.attachments import Attachment
from oh_jupyter.agents.commands import ENTRY_POINT_GROUP, AgentCommand, known_agents
from oh_jupyter.agents.guests import GuestAgents
from oh_jupyter.agents.turn import AgentTurn, PlanEntry, ToolCall

__all__ = [
    "ENTRY_POINT_GROUP",
    "AgentCommand",
    "AgentTurn",
    "Attachment",
    "GuestAgents",
    "PlanEntry",
    "ToolCall",
    "known_agents",
]
