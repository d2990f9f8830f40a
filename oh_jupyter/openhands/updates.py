"""Events of a conversation of the SDK as updates of the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import acp
from openhands.sdk.event import (
    ActionEvent,
    AgentErrorEvent,
    MessageEvent,
    ObservationEvent,
)
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.llm import TextContent

FINISH = "finish"
"""The SDK's tool whose argument is what the agent says at the end."""

_KINDS = {"terminal": "execute", "ipython": "execute", "file_editor": "edit", "notebook": "edit"}
_MAIN_ARGUMENTS = ("command", "code", "url", "path", "text")


def updates_of_event(event: Any) -> Iterator[Any]:
    """What a client is told of an event; nothing of most."""
    match event:
        case ActionEvent(tool_name=name) if name == FINISH:
            message = getattr(event.action, "message", "")
            if message:
                yield acp.update_agent_message_text(message)
        case ActionEvent():
            if thought := _text(event.thought):
                yield acp.update_agent_message_text(f"{thought}\n\n")
            arguments = {} if event.action is None else event.action.model_dump(exclude={"kind"})
            given = {name: value for name, value in arguments.items() if value is not None}
            yield acp.start_tool_call(
                event.tool_call_id,
                _title(event, given),
                kind=_KINDS.get(event.tool_name, "other"),  # type: ignore[arg-type]
                status="in_progress",
                raw_input=given,
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
    told = [str(arguments[name]) for name in _MAIN_ARGUMENTS if arguments.get(name)]
    return event.summary or f"{event.tool_name} {told[0] if told else ''}".strip()


def _ended(id: str, text: str, *, failed: bool) -> Any:
    content = [acp.tool_content(acp.text_block(text))]
    return acp.update_tool_call(id, status="failed" if failed else "completed", content=content)


def _text(content: Any) -> str:
    return "".join(part.text for part in content if isinstance(part, TextContent))
