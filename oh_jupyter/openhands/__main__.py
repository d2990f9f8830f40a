"""Agent of OpenHands' SDK that speaks the Agent Client Protocol: ``%oh_agent openhands``.

The loop runs in this process, on the runtime of the kernel whose guest it is. The
SDK's own variables choose the model: ``LLM_MODEL``, ``LLM_API_KEY``, ``LLM_BASE_URL``.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import acp
from acp.schema import (
    InitializeResponse,
    McpServerStdio,
    NewSessionResponse,
    PromptResponse,
    TextContentBlock,
)
from openhands.sdk.event import (
    ActionEvent,
    AgentErrorEvent,
    MessageEvent,
    ObservationEvent,
)
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.llm import TextContent

from oh_jupyter.openhands.connection import connect_as_guest

if TYPE_CHECKING:
    from openhands.sdk.conversation import LocalConversation

TOOLS = ("terminal", "file_editor", "browser_tool_set", "ipython", "notebook", "task_tracker")
TOOL_SERVER = "oh"
"""Name of the MCP server by which guests reach their kernel."""

MODEL_VARIABLE = "LLM_MODEL"
FINISH = "finish"
"""The SDK's tool whose argument is what the agent says at the end."""

_KINDS = {"terminal": "execute", "ipython": "execute", "file_editor": "edit", "notebook": "edit"}
_MAIN_ARGUMENTS = ("command", "code", "url", "path", "text")


class SdkAgent:
    """Agent side of the protocol; each session is a conversation of the SDK."""

    def __init__(self) -> None:
        self._conversations: dict[str, LocalConversation] = {}
        self._updates: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._telling: asyncio.Task[None] | None = None

    def on_connect(self, connection: Any) -> None:
        """Store the connection to the client."""
        self._client = connection
        self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            session_id, update = await self._updates.get()
            try:
                await self._client.session_update(session_id=session_id, update=update)
            finally:
                self._updates.task_done()

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        """Return the capabilities of this agent."""
        return InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> NewSessionResponse:
        """Start a conversation on the kernel of the MCP server ``oh`` in the request."""
        if not os.environ.get(MODEL_VARIABLE):
            raise acp.RequestError.invalid_params(
                {
                    "details": "No model is named: set LLM_MODEL, such as "
                    "anthropic/claude-sonnet-4-5, and LLM_API_KEY where JupyterLab is started"
                }
            )
        for server in mcp_servers or ():
            if isinstance(server, McpServerStdio) and server.name == TOOL_SERVER:
                command = (server.command, *server.args)
                await asyncio.to_thread(connect_as_guest, command)
                break
        session_id = str(uuid.uuid4())
        self._conversations[session_id] = await asyncio.to_thread(self._begin, session_id, cwd)
        return NewSessionResponse(session_id=session_id)

    def _begin(self, session_id: str, cwd: str) -> LocalConversation:
        from openhands.sdk import LLM, Agent, Conversation, Tool
        from openhands.tools import task_tracker  # noqa: F401

        import oh_jupyter.openhands.browser_tools
        import oh_jupyter.openhands.tools  # noqa: F401

        def report(event: Any) -> None:
            for update in updates_of_event(event):
                self._loop.call_soon_threadsafe(self._updates.put_nowait, (session_id, update))

        agent = Agent(llm=LLM.load_from_env(), tools=[Tool(name=name) for name in TOOLS])
        conversation: LocalConversation = Conversation(
            agent=agent, workspace=cwd, callbacks=[report], visualizer=None
        )
        return conversation

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        """Run a prompt to its end."""
        conversation = self._conversations[session_id]
        text = "\n".join(block.text for block in prompt if isinstance(block, TextContentBlock))
        await asyncio.to_thread(conversation.send_message, text)
        try:
            await conversation.arun()
        except Exception as error:
            raise acp.RequestError.internal_error({"details": str(error)}) from error
        await asyncio.sleep(0)  # until the last events are in the queue
        await self._updates.join()
        paused = conversation.state.execution_status.value == "paused"
        return PromptResponse(stop_reason="cancelled" if paused else "end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Cancel the running prompt."""
        if session_id in self._conversations:
            self._conversations[session_id].interrupt()


def updates_of_event(event: Any) -> Iterator[Any]:
    """Yield the updates that a client gets for an event; most events have none."""
    match event:
        case ActionEvent(tool_name=name) if name == FINISH:
            message = getattr(event.action, "message", "")
            if message:
                yield acp.update_agent_message_text(message)
        case ActionEvent():
            if thought := _text(event.thought):
                yield acp.update_agent_message_text(f"{thought}\n\n")
            fields = {} if event.action is None else event.action.model_dump(exclude={"kind"})
            arguments = {name: value for name, value in fields.items() if value is not None}
            yield acp.start_tool_call(
                event.tool_call_id,
                _title(event, arguments),
                kind=_KINDS.get(event.tool_name, "other"),  # type: ignore[arg-type]
                status="in_progress",
                raw_input=arguments,
            )
        case ObservationEvent(tool_name=name) if name != FINISH:
            text = _text(event.observation.to_llm_content)
            yield _ended(event.tool_call_id, text, failed=event.observation.is_error)
        case AgentErrorEvent():
            yield _ended(event.tool_call_id, event.error, failed=True)
        case MessageEvent(source="agent"):
            if text := _text(event.llm_message.content):
                yield acp.update_agent_message_text(text)
        case ConversationErrorEvent():
            yield acp.update_agent_message_text(f"{event.code}: {event.detail}")
        case _:
            return


def _title(event: Any, arguments: dict[str, Any]) -> str:
    values = [str(arguments[name]) for name in _MAIN_ARGUMENTS if arguments.get(name)]
    return event.summary or f"{event.tool_name} {values[0] if values else ''}".strip()


def _ended(id: str, text: str, *, failed: bool) -> Any:
    content = [acp.tool_content(acp.text_block(text))]
    return acp.update_tool_call(id, status="failed" if failed else "completed", content=content)


def _text(content: Any) -> str:
    return "".join(part.text for part in content if isinstance(part, TextContent))


async def main() -> None:
    """Speak the protocol on standard output; redirect other output to standard error."""
    sys.stdout = protocol_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    reader, writer = await acp.stdio_streams()
    sys.stdout = sys.stderr
    await acp.run_agent(SdkAgent(), writer, reader)  # type: ignore[arg-type]
    protocol_output.close()


if __name__ == "__main__":
    asyncio.run(main())
