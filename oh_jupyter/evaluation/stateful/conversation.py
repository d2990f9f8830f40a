"""The conversation of an agent about a stateful task, and what it costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from anyio.from_thread import BlockingPortal, start_blocking_portal

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import Agent, EpisodeLog
from oh_jupyter.evaluation.stateful.environments import Environment
from oh_jupyter.events import MCPAction, MCPObservation, MessageAction
from oh_jupyter.runtime.mcp.connection import McpConnection

if TYPE_CHECKING:
    from oh_jupyter.runtime.mcp import McpServer

COUNTS = ("calls", "read_chars", "written_chars")
"""Measures of an agent's work: calls of tools, characters of their results and of arguments."""

Record = Callable[[str, dict[str, Any], str, bool], None]
"""Takes a finished call: tool, arguments, the text of the result, and whether it failed."""


@runtime_checkable
class ConversingAgent(Protocol):
    """An agent that uses MCP servers by itself, and gets one prompt for each turn."""

    def converse(
        self, workspace: Path, server: McpServer, record: Record
    ) -> AbstractContextManager[Callable[[str], str]]:
        """Begin a conversation; return a function that takes a prompt and returns the reply."""


class Conversation:
    """Prompts and replies, in the log of the episode, and the measures so far."""

    def __init__(self, reply_to: Callable[[int, str], str], log: EpisodeLog | None) -> None:
        self.measures: dict[str, float] = dict.fromkeys(COUNTS, 0)
        self._reply_to = reply_to
        self._log = log

    def ask(self, turn: int, prompt: str) -> str:
        """Send the prompt of a turn, and return the agent's reply."""
        self._record_message(prompt, "user")
        reply = self._reply_to(turn, prompt)
        self._record_message(reply, "agent")
        return reply

    def record(
        self, tool: str, arguments: dict[str, Any], result: str, is_error: bool = False
    ) -> None:
        """Count a call of a tool, and add it to the log."""
        self.measures["calls"] += 1
        self.measures["read_chars"] += len(result)
        self.measures["written_chars"] += len(json.dumps(arguments, ensure_ascii=False))
        if self._log is not None:
            self._log.event(MCPAction(name=tool, arguments=arguments))
            self._log.event(MCPObservation(result, name=tool, arguments=arguments))

    def _record_message(self, text: str, source: str) -> None:
        if self._log is not None:
            message = MessageAction(text)
            message.source = source  # type: ignore[assignment]
            self._log.event(message)


@contextmanager
def converse(
    agent: Agent,
    about: Mapping[str, Any],
    environment: Environment,
    workspace: Path,
    steps: int,
    log: EpisodeLog | None,
) -> Iterator[Conversation]:
    """Begin the conversation of an agent in an environment; ``about`` describes the task to it."""
    with ExitStack() as stack:
        if isinstance(agent, ConversingAgent):
            conversation = Conversation(lambda turn, prompt: reply(prompt), log)
            reply = stack.enter_context(
                agent.converse(workspace, environment.server, conversation.record)
            )
        else:
            tools = stack.enter_context(Tools.of(environment.server, workspace))
            stepwise = Stepwise(agent, about, tools, steps)
            conversation = Conversation(stepwise.reply, log)
            stepwise.record = conversation.record
        yield conversation


class Tools:
    """The tools of an MCP server, with blocking calls."""

    def __init__(self, connection: McpConnection, portal: BlockingPortal) -> None:
        self._connection, self._portal = connection, portal
        self.described = connection.tools

    @classmethod
    @contextmanager
    def of(cls, server: McpServer, workspace: Path) -> Iterator[Tools]:
        """Start a server; it ends with the block."""
        connection = McpConnection(server, str(workspace), asyncio.to_thread, lambda: None)
        with start_blocking_portal() as portal:
            portal.call(connection.start)
            try:
                yield cls(connection, portal)
            finally:
                portal.call(connection.close)

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Return the text of a result, and whether it is an error."""
        result = self._portal.call(self._connection.call, tool, arguments)
        blocks = [block["text"] for block in result["content"] if block["type"] == "text"]
        return "\n".join(blocks), bool(result.get("isError"))


class Stepwise:
    """Turns of an agent that is a function and returns one call at a time."""

    def __init__(self, agent: Agent, about: Mapping[str, Any], tools: Tools, steps: int) -> None:
        self.record: Record = lambda *call: None
        self._agent, self._about, self._tools, self._steps = agent, about, tools, steps

    def reply(self, turn: int, prompt: str) -> str:
        """Let the agent call tools until it replies."""
        seen: dict[str, Any] = {
            **self._about,
            "goal": prompt,
            "turn": turn,
            "tools": self._tools.described,
            "observation": None,
        }
        for _ in range(self._steps + 1):
            action = self._agent(seen)
            if not isinstance(action, dict):
                return str(action or "")
            tool, arguments = action.get("tool"), action.get("arguments")
            if not isinstance(tool, str) or not isinstance(arguments, dict):
                raise EvaluationError(
                    f"{action!r} is neither a reply nor a call, which has tool and arguments"
                )
            text, is_error = self._tools.call(tool, arguments)
            self.record(tool, arguments, text, is_error)
            seen = {**seen, "observation": text}
        raise EvaluationError(f"It made more than {self._steps} calls; steps allows more")
