"""Coding agents that speak the Agent Client Protocol, as agents of an evaluation."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal

from oh_jupyter._version import __version__
from oh_jupyter.agents.commands import TOOL_SERVER, AgentCommand
from oh_jupyter.browser import flatten_axtree
from oh_jupyter.errors import ExtraMissingError
from oh_jupyter.process import PIPE, spawn

try:
    import acp
    from acp.schema import (
        AgentMessageChunk,
        ClientCapabilities,
        ContentToolCallContent,
        EnvVariable,
        Implementation,
        McpServerStdio,
        PermissionOption,
        RequestPermissionResponse,
        TextContentBlock,
        ToolCallProgress,
        ToolCallStart,
        ToolCallUpdate,
    )
except ImportError as error:
    raise ExtraMissingError(
        f"Agents of the Agent Client Protocol need a package: {error}. Run: "
        "pip install 'oh_jupyter[agents]'"
    ) from error

from oh_jupyter.agents.permissions import permission_response
from oh_jupyter.agents.transport import ChildTransport, connect
from oh_jupyter.agents.turn import ToolCall

if TYPE_CHECKING:
    from oh_jupyter.evaluation.stateful.conversation import Record
    from oh_jupyter.runtime.mcp import McpServer

START_SECONDS = 120.0
ACTION_PROMPT = (
    "You act in a web page, one action at a time. Goal: {goal}\n\nPage:\n{page}\n\n{error}"
    "Reply with the next action and nothing else, such as click('12'), fill('12', 'text') or "
    "noop(); numbers in brackets are the elements. Reply with an empty text to give up."
)


class AcpAgent:
    """An agent that is a program; each episode starts its own.

    It gets the MCP server of a stateful task, works on a repository by itself, and for tasks in a
    browser replies to each observation with an action. Whatever it asks permission for is allowed.
    """

    def __init__(self, command: AgentCommand) -> None:
        """Take the agent's command, which is started with the first prompt."""
        self.command = command
        self._stack = ExitStack()
        self._ask: Callable[[str], str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the command, which starts another program in an episode's process."""
        return {"command": self.command, "_ask": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore an agent whose program is not started."""
        self.__dict__ |= {**state, "_stack": ExitStack()}

    def __call__(self, seen: Mapping[str, Any]) -> str:
        """Return the reply to an observation as the next action; "" after a repository's task."""
        workspace = seen.get("workspace")
        if workspace is not None and seen["observation"] is not None:
            return ""
        if self._ask is None:
            folder = workspace or self._stack.enter_context(tempfile.TemporaryDirectory())
            self._ask = self._stack.enter_context(self.converse(Path(folder), None, _forget))
        if workspace is not None:
            self._ask(f"{seen['goal']}\n\nThe repository is in {workspace}.")
            return ""
        failed = seen["last_action_error"]
        error = f"The last action failed: {failed}\n\n" if failed else ""
        page = flatten_axtree(seen["axtree_object"])
        prompt = ACTION_PROMPT.format(goal=seen["goal"], page=page, error=error)
        return self._ask(prompt).strip().strip("`").strip()

    def close(self) -> None:
        """End the program of the episode."""
        self._stack.close()
        self._ask = None

    @contextmanager
    def converse(
        self, workspace: Path, server: McpServer | None, record: Record
    ) -> Iterator[Callable[[str], str]]:
        """Begin a conversation; see ``ConversingAgent``."""
        with start_blocking_portal() as portal:
            session = Session(self.command, workspace, server, record)
            try:
                portal.call(session.open)
                yield lambda prompt: portal.call(session.ask, prompt)
            finally:
                portal.call(session.close)


def _forget(*call: Any) -> None:
    """Record nothing."""


class Session:
    """The program of an agent with one session of its protocol."""

    def __init__(
        self, command: AgentCommand, workspace: Path, server: McpServer | None, record: Record
    ) -> None:
        self._command, self._workspace = command, workspace
        self._server, self._client = server, Client(record)
        self._transport: ChildTransport | None = None

    async def open(self) -> None:
        """Start the program and a session."""
        argv = self._command.arguments()
        configure = self._command.configure_tools
        if self._server is not None and configure is not None:
            variables = [f"{name}={value}" for name, value in self._server.env.items()]
            argv += configure(["env", *variables, self._server.command, *self._server.args])
        child = await asyncio.to_thread(
            spawn, argv, cwd=self._workspace, env=dict(os.environ),
            stdin=PIPE, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        self._transport = ChildTransport(child)
        self._child = child
        self._connection = connect(self._client, self._transport)
        async with asyncio.timeout(START_SECONDS):
            await self._connection.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(),
                client_info=Implementation(name="oh_jupyter", version=__version__),
            )
            session = await self._connection.new_session(
                cwd=str(self._workspace),
                mcp_servers=[] if configure is not None else self._described(),
                **self._command.session_options,
            )
        self._session_id = session.session_id

    def _described(self) -> list[McpServerStdio]:
        if self._server is None:
            return []
        variables = [EnvVariable(name=name, value=text) for name, text in self._server.env.items()]
        return [
            McpServerStdio(
                name=TOOL_SERVER, command=self._server.command,
                args=list(self._server.args), env=variables,
            )
        ]  # fmt: skip

    async def ask(self, prompt: str) -> str:
        """Send a prompt, and return the text of the reply."""
        self._client.texts.clear()
        block: list[Any] = [acp.text_block(prompt)]
        await self._connection.prompt(session_id=self._session_id, prompt=block)
        return "".join(self._client.texts)

    async def close(self) -> None:
        """End the program and all that it has started."""
        if self._transport is not None:
            await self._connection.close()
            await self._transport.close()
            await asyncio.to_thread(self._child.terminate)


class Client:
    """The client's side of the protocol: it allows everything, and collects texts and calls."""

    def __init__(self, record: Record) -> None:
        self.texts: list[str] = []
        self._record = record
        self._calls: dict[str, ToolCall] = {}

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow it."""
        return permission_response(options, approved=True)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Collect texts, and record calls that have ended."""
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self.texts.append(text)
            case ToolCallStart() | ToolCallProgress():
                self._note(update)

    def _note(self, update: Any) -> None:
        call = self._calls.setdefault(update.tool_call_id, ToolCall(update.tool_call_id))
        if call.is_done:
            return
        self.texts.clear()  # the reply follows the last call
        call.title, call.status = update.title or call.title, update.status or call.status
        if update.raw_input is not None:
            call.arguments = update.raw_input
        for part in update.content or ():
            match part:
                case ContentToolCallContent(content=TextContentBlock(text=text)):
                    call.output += text
        if not call.output and update.raw_output is not None:
            raw = update.raw_output
            call.output = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
        if call.is_done:
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            self._record(call.title, arguments, call.output, call.status == "failed")
