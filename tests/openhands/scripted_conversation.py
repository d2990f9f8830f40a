"""Conversations of a stock agent whose model answers as scripted; run in kernels by the tests."""

import json
import os
from typing import Any

os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched

from openhands.sdk import Agent, Conversation, Message, TextContent, Tool
from openhands.sdk.event import AgentErrorEvent, ObservationEvent
from openhands.sdk.llm import MessageToolCall
from openhands.sdk.testing import TestLLM

import oh_jupyter.openhands

TOOLS = ("terminal", "file_editor", "browser_tool_set", "ipython", "notebook")


def reply(step: Any, number: int) -> Message:
    """Return a model reply: a text, or a tool's name with its arguments."""
    if isinstance(step, str):
        return Message(role="assistant", content=[TextContent(text=step)])
    call = MessageToolCall(
        id=f"call_{number}", name=step[0], arguments=json.dumps(step[1]), origin="completion"
    )
    return Message(role="assistant", content=[], tool_calls=[call])


def begin(*steps: Any, prompt: str = "Do as scripted.") -> Any:
    """A conversation that waits to be run."""
    llm = TestLLM.from_messages([reply(step, at) for at, step in enumerate((*steps, "Done."))])
    agent = Agent(llm=llm, tools=[Tool(name=name) for name in TOOLS], include_default_tools=[])
    conversation = Conversation(agent=agent, workspace=os.getcwd(), visualizer=None)
    conversation.send_message(prompt)
    return conversation


def observed(conversation: Any) -> list[str]:
    """Return the results of tool calls that the model got, errors marked with a !."""
    results = []
    for event in conversation.state.events:
        if isinstance(event, ObservationEvent):
            parts = event.observation.to_llm_content
            text = "".join(getattr(part, "text", "(image)") for part in parts)
            results.append(("!" if event.observation.is_error else "") + text)
        elif isinstance(event, AgentErrorEvent):
            results.append(f"!!{event.error}")
    return results


def carry_out(*steps: Any) -> list[str]:
    """Run a conversation; what its tools gave."""
    conversation = begin(*steps)
    oh_jupyter.openhands.run(conversation)
    return observed(conversation)
