"""Tool calls that outlive their clients, told in the words of MCP's Tasks."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ToolCall
from oh_jupyter.server.links import Reply
from oh_jupyter.server.mcp.kernel import Look, under_way
from oh_jupyter.server.mcp.results import Result, failure
from oh_jupyter.server.result_store import RETENTION_SECONDS, ResultStore, StoredResult

POLL_INTERVAL_MS = 1000
"""Pause between two looks of a client."""

MAX_STATUS_LINES = 3
"""Lines of what is put out that are told."""

MAX_GIVEN_CHARS = 100
"""Characters of a call's first argument that are told of what waits."""

FOR_A_PERSON = "Waits for a person to approve it in the notebook."


@dataclass(frozen=True)
class CallTask:
    """A call that goes on whether or not its client is there."""

    id: str
    stored: StoredResult
    looks: list[Look] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether nothing becomes of it any more."""
        return self.stored.task.done()

    async def wait(self, timeout_seconds: float | None = None) -> None:
        """Wait until it is over."""
        await asyncio.wait({self.stored.task}, timeout=timeout_seconds)

    async def cancel(self) -> None:
        """Take it back; what can be interrupted is."""
        self.stored.task.cancel()
        await self.wait()

    def result(self) -> Result:
        """What has become of it."""
        if self.stored.task.cancelled():
            return failure("The task was cancelled.")
        found: Result = json.loads(self.stored.task.result().body or b"{}")
        return found

    def handle(self) -> dict[str, Any]:
        """The ``Task`` of the extension io.modelcontextprotocol/tasks."""
        begun, ended = self.stored.begun, self.stored.ended
        kept_ms = None
        if ended is not None:
            kept_ms = round(((ended - begun).total_seconds() + RETENTION_SECONDS) * 1000)
        return {
            "taskId": self.id,
            "createdAt": begun.isoformat(),
            "lastUpdatedAt": (ended or begun).isoformat(),
            "ttlMs": kept_ms,
            "pollIntervalMs": POLL_INTERVAL_MS,
            "status": "working",
        }

    async def details(self) -> dict[str, Any]:
        """The ``DetailedTask`` of the extension: how it goes, and what has become of it."""
        status = await self._status()
        return {**self.handle(), **status}

    async def _status(self) -> dict[str, Any]:
        if self.stored.task.cancelled():
            return {"status": "cancelled", "statusMessage": "It was taken back."}
        if self.is_over:
            return {"status": "completed", "result": self.result()}
        state, lines = await look(self.looks)
        if state == "waiting":
            # Nothing is asked of the client: whoever wants something done does not approve it.
            return {"status": "input_required", "statusMessage": FOR_A_PERSON, "inputRequests": {}}
        return {"status": "working", **({"statusMessage": lines} if lines else {})}


async def look(looks: list[Look]) -> tuple[str, str]:
    """The state of what a call has under way, and the last lines that it has put out."""
    state = text = ""
    if looks:
        with suppress(OhJupyterError):
            state, text = await looks[-1]()
    return state, "\n".join(text.splitlines()[-MAX_STATUS_LINES:])


def for_approval(call: ToolCall) -> str:
    """That a call waits for a person, and on what."""
    given = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return f"waits for a person's approval in JupyterLab ({call.name} {given[:MAX_GIVEN_CHARS]})"


class CallTasks:
    """The tasks of a server, each of a principal, until a while after they are over."""

    def __init__(self) -> None:
        self._results = ResultStore()
        self._looks: dict[str, list[Look]] = {}

    def start(self, owner: str, work: Callable[[], Awaitable[Result]]) -> CallTask:
        """Begin a call; LimitExceededError if there are too many."""
        looks: list[Look] = []

        async def carry_out(stored: StoredResult) -> Reply:
            under_way.set(looks)
            return Reply({}, json.dumps(await work()).encode())

        id = uuid.uuid4().hex
        stored = self._results.start(id, owner, carry_out)
        self._looks[id] = looks
        stored.task.add_done_callback(lambda _: self._looks.pop(id))
        return CallTask(id, stored, looks)

    def find(self, id: str, owner: str) -> CallTask:
        """A task; RequestNotFoundError if this principal has none of that id, or no more."""
        return CallTask(id, self._results.find(id, owner), self._looks.get(id, []))
