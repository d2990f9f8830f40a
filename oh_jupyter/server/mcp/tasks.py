"""Tool calls that outlive their request: MCP Tasks, and calls that their clients repeat."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import RequestNotFoundError
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.mcp_tools.kernel import CallActions, current_actions
from oh_jupyter.mcp_tools.progress import look
from oh_jupyter.mcp_tools.results import Result, failure
from oh_jupyter.server.links import Reply
from oh_jupyter.server.mcp.approval import ClientQuestions, while_asking
from oh_jupyter.server.result_store import RETENTION_SECONDS, ResultStore, StoredResult

POLL_INTERVAL_MS = 1000  # suggested pause between two polls of a client
NEEDS_APPROVAL = "Waiting for a person to approve it in the notebook."


@dataclass(frozen=True)
class CallTask:
    """A call that continues without its client."""

    id: str
    stored: StoredResult
    actions: CallActions = field(default_factory=CallActions)
    questions: ClientQuestions | None = None

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self.stored.task.done()

    async def wait(self, timeout_seconds: float | None = None) -> None:
        """Wait until the call has ended."""
        await asyncio.wait({self.stored.task}, timeout=timeout_seconds)

    async def cancel(self) -> None:
        """Cancel the call, and interrupt what can be interrupted."""
        self.stored.task.cancel()
        await self.wait()

    async def wait_for_client(self) -> None:
        """Wait until the call has ended, or asks its client's person."""
        assert self.questions is not None
        opened = asyncio.ensure_future(self.questions.opened())
        try:
            await asyncio.wait({self.stored.task, opened}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()

    def input_required(self) -> dict[str, Any]:
        """Return the ``InputRequiredResult`` of a call that asks its client's person."""
        assert self.questions is not None
        return {"inputRequests": self.questions.requests, "requestState": self.id}

    def result(self) -> Result:
        """Return the result of an ended call."""
        if self.stored.task.cancelled():
            return failure("The task was cancelled.")
        result: Result = json.loads(self.stored.task.result().body or b"{}")
        return result

    def handle(self) -> dict[str, Any]:
        """Return the ``Task`` of the extension io.modelcontextprotocol/tasks."""
        started, ended = self.stored.started, self.stored.ended
        ttl_ms = None
        if ended is not None:
            ttl_ms = round(((ended - started).total_seconds() + RETENTION_SECONDS) * 1000)
        return {
            "taskId": self.id,
            "createdAt": started.isoformat(),
            "lastUpdatedAt": (ended or started).isoformat(),
            "ttlMs": ttl_ms,
            "pollIntervalMs": POLL_INTERVAL_MS,
            "status": "working",
        }

    async def details(self) -> dict[str, Any]:
        """Return the ``DetailedTask`` of the extension: the task with status and result."""
        return {**self.handle(), **await self._status()}

    async def _status(self) -> dict[str, Any]:
        if self.stored.task.cancelled():
            return {"status": "cancelled", "statusMessage": "The task was cancelled."}
        if self.is_over:
            return {"status": "completed", "result": self.result()}
        state, lines = await look(self.actions)
        if state == "waiting":
            # Without the setting no input is requested: a client could approve its own call.
            requests = {} if self.questions is None else self.questions.requests
            return {
                "status": "input_required",
                "statusMessage": NEEDS_APPROVAL,
                "inputRequests": requests,
            }
        return {"status": "working", **({"statusMessage": lines} if lines else {})}


class CallTasks:
    """The tasks of a server by principal, kept for a while after they end."""

    def __init__(self) -> None:
        self._results = ResultStore()
        self._running: dict[str, CallTask] = {}

    def start(
        self,
        call: ToolRequest,
        owner: str,
        work: Callable[[], Awaitable[Result]],
        *,
        asks_client: bool = False,
    ) -> CallTask:
        """Start a call, or raise LimitExceededError.

        ``asks_client`` opens questions to the client's person about Actions that wait.
        """
        actions, questions = CallActions(), ClientQuestions() if asks_client else None

        async def execute(stored: StoredResult) -> Reply:
            current_actions.set(actions)
            if questions is not None:
                result = await while_asking(work, actions, questions.elicit)
            else:
                result = await work()
            return Reply({}, json.dumps(result).encode())

        id = f"{uuid.uuid4().hex}.{digest(call)}"
        task = CallTask(id, self._results.start(id, owner, execute), actions, questions)
        self._running[id] = task
        task.stored.task.add_done_callback(lambda _: self._running.pop(id))
        return task

    def find(self, id: str, owner: str) -> CallTask:
        """Return a principal's task, or raise RequestNotFoundError."""
        stored = self._results.find(id, owner)
        return self._running.get(id) or CallTask(id, stored)

    def repeated(self, call: ToolRequest, id: str, owner: str) -> CallTask:
        """Return the task that a call continues, or raise RequestNotFoundError."""
        if not id.endswith(f".{digest(call)}"):
            raise RequestNotFoundError(
                "The requestState belongs to another call. Repeat the call with its own arguments, "
                "or call the tool without a requestState."
            )
        return self.find(id, owner)


def digest(call: ToolRequest) -> str:
    """Return a digest of a tool's name and arguments, which a repeated call must not change."""
    content = json.dumps([call.name, call.arguments], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
