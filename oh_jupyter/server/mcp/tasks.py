"""Tool calls that outlive their clients, as MCP Tasks."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.server.links import Reply
from oh_jupyter.server.mcp.kernel import CallActions, current_actions
from oh_jupyter.server.mcp.results import Result, failure
from oh_jupyter.server.result_store import RETENTION_SECONDS, ResultStore, StoredResult

POLL_INTERVAL_MS = 1000  # suggested pause between two polls of a client
MAX_STATUS_LINES = 3  # lines of output in a status message
MAX_ARGUMENT_CHARS = 100  # characters of a waiting call's first argument in its progress message
NEEDS_APPROVAL = "Waiting for a person to approve it in the notebook."


@dataclass(frozen=True)
class CallTask:
    """A call that continues without its client."""

    id: str
    stored: StoredResult
    actions: CallActions = field(default_factory=CallActions)

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
            # No input is requested: the client must not approve its own call.
            return {
                "status": "input_required",
                "statusMessage": NEEDS_APPROVAL,
                "inputRequests": {},
            }
        return {"status": "working", **({"statusMessage": lines} if lines else {})}


async def look(actions: CallActions) -> tuple[str, str]:
    """Return the state of a call's current Action, and its last lines of output."""
    state = text = ""
    if actions.current is not None:
        with suppress(OhJupyterError):
            state, text = await actions.current.look()
    return state, "\n".join(text.splitlines()[-MAX_STATUS_LINES:])


def for_approval(call: ToolRequest) -> str:
    """Return the progress message of a call that waits for approval."""
    argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    excerpt = argument[:MAX_ARGUMENT_CHARS]
    return f"waiting for a person's approval in JupyterLab ({call.name} {excerpt})"


class CallTasks:
    """The tasks of a server by principal, kept for a while after they end."""

    def __init__(self) -> None:
        self._results = ResultStore()
        self._actions: dict[str, CallActions] = {}

    def start(self, owner: str, work: Callable[[], Awaitable[Result]]) -> CallTask:
        """Start a call, or raise LimitExceededError."""
        actions = CallActions()

        async def execute(stored: StoredResult) -> Reply:
            current_actions.set(actions)
            return Reply({}, json.dumps(await work()).encode())

        id = uuid.uuid4().hex
        stored = self._results.start(id, owner, execute)
        self._actions[id] = actions
        stored.task.add_done_callback(lambda _: self._actions.pop(id))
        return CallTask(id, stored, actions)

    def find(self, id: str, owner: str) -> CallTask:
        """Return a principal's task, or raise RequestNotFoundError."""
        return CallTask(id, self._results.find(id, owner), self._actions.get(id, CallActions()))
