"""Approval of waiting Actions by the person at an MCP client.

A client with a session is asked by elicitation during the call. A sessionless one gets a result
that requires input, and repeats the call with its person's responses (MCP 2026-07-28).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events.question import question_terms
from oh_jupyter.mcp_sdk.offered import Elicit, form_content
from oh_jupyter.mcp_tools.kernel import CallActions, RunningAction
from oh_jupyter.operations.actions import Question
from oh_jupyter.text import shorten

T = TypeVar("T")

MAX_MESSAGE_CHARS = 4000
WAIT_SECONDS = 60.0
"""Longest wait for a question in one request to the kernel."""

BY = "the person at the MCP client"
FORM = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve", "description": "Start the action."},
        "scope": {
            "type": "string",
            "title": "Scope of an approval",
            "description": "Whether later actions of the type that wait for the same reasons "
            "start without a question.",
            "enum": ["once", "session", "workspace"],
            "enumNames": ["Only this action", "For this session", "Always in this workspace"],
            "default": "once",
        },
        "reason": {"type": "string", "title": "Reason", "description": "For a rejection."},
    },
    "required": ["approve"],
}
"""Form of the question; the specification allows a flat object of primitive fields."""


class ClientQuestions:
    """Open questions of one call, for a client that fetches them and sends the responses."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[str, Any]] = {}
        self._responses: dict[str, asyncio.Future[dict[str, Any] | None]] = {}
        self._count = 0
        self._is_open = asyncio.Event()

    @property
    def requests(self) -> dict[str, dict[str, Any]]:
        """The open questions by key, as MCP's ``InputRequests``."""
        return {
            key: {
                "method": "elicitation/create",
                "params": {"mode": "form", **self._forms[key]},
            }
            for key in self._forms
        }

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Open a question and wait for its response, see ``Elicit``."""
        self._count += 1
        key = f"approval-{self._count}"
        self._forms[key] = {"message": message, "requestedSchema": dict(schema)}
        response: asyncio.Future[dict[str, Any] | None]
        response = self._responses[key] = asyncio.get_running_loop().create_future()
        self._is_open.set()
        try:
            return await response
        finally:
            self._close(key)

    def respond(self, responses: Mapping[str, Mapping[str, Any]]) -> None:
        """Pass on MCP's ``InputResponses`` to the open questions; others are too late."""
        for key, response in responses.items():
            if key in self._forms and not self._responses[key].done():
                content = form_content(str(response.get("action")), response.get("content"))
                self._responses[key].set_result(content)
                self._close(key)

    def _close(self, key: str) -> None:
        self._forms.pop(key, None)
        if not self._forms:
            self._is_open.clear()

    async def opened(self) -> None:
        """Wait until a question is open."""
        await self._is_open.wait()


async def while_asking(work: Callable[[], Awaitable[T]], actions: CallActions, elicit: Elicit) -> T:
    """Execute a call, and ask the client's person about its Actions that wait.

    The questions stay open in the other places; the first decision counts.
    """
    asking = asyncio.create_task(_ask_client(actions, elicit))
    try:
        return await work()
    finally:
        asking.cancel()
        await asyncio.wait({asking})


async def _ask_client(actions: CallActions, elicit: Elicit) -> None:
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
        question.id,
        approve=answer.get("approve") is True,
        why=str(answer.get("reason") or ""),
        by=BY,
        scope=str(answer.get("scope") or "once"),
    )


def _message(question: Question) -> str:
    parts = [question.message, question.diff]
    marker = " …\n(The whole action is shown in JupyterLab.)"
    text = shorten("\n".join(filter(None, parts)), MAX_MESSAGE_CHARS, marker=marker)
    who = question.agent or "The agent"
    terms = question_terms(question.sandboxed, question.seconds_left)
    return f"{who} wants to do this:\n\n{text}\n\nIt waits because {question.reason} ({terms})."
