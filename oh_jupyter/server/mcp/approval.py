"""Approval of waiting Actions by the person at an MCP client, through elicitation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import Elicit
from oh_jupyter.server.mcp.kernel import CallActions, RunningAction

MAX_MESSAGE_CHARS = 4000
WAIT_SECONDS = 60.0
"""Longest wait for a question in one request to the kernel."""

BY = "the person at the MCP client"
FORM = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve", "description": "Start the action."},
        "reason": {"type": "string", "title": "Reason", "description": "For a rejection."},
    },
    "required": ["approve"],
}
"""Form of the question; the specification allows a flat object of primitive fields."""


async def ask_client(actions: CallActions, elicit: Elicit) -> None:
    """Ask the client's person about each Action of a call that waits, until cancelled.

    The question stays open in the other places; the first decision counts.
    """
    async with anyio.create_task_group() as group:
        async for action in actions.started():
            group.start_soon(_ask_about, action, elicit)


async def _ask_about(action: RunningAction, elicit: Elicit) -> None:
    with suppress(OhJupyterError):  # decided elsewhere, or the kernel is gone
        await _ask_and_decide(action, elicit)


async def _ask_and_decide(action: RunningAction, elicit: Elicit) -> None:
    while (question := await action.question(WAIT_SECONDS)) is None:
        pass
    answer = await elicit(_message(question), FORM)
    if answer is None:  # dismissed: the other places can still decide
        return
    await action.decide(
        question["id"],
        approve=answer.get("approve") is True,
        why=str(answer.get("reason") or ""),
        by=BY,
    )


def _message(question: dict[str, Any]) -> str:
    parts = [question["message"], question["diff"]]
    text = "\n".join(part for part in parts if part)
    if len(text) > MAX_MESSAGE_CHARS:
        text = text[:MAX_MESSAGE_CHARS] + " …\n(The whole action is shown in JupyterLab.)"
    return f"{text}\n\nIt waits because {question['reason']}."
