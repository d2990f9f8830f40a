"""Commands of OpenHands' SDK: started by one request, polled by others."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from oh_jupyter.background import Watchers
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.operations.actions import ExecuteAction
from oh_jupyter.server.links import KernelLink

MAX_EVENTS = 2000  # events remembered of a kernel; the oldest are dropped first
NO_EXIT_CODE = -1  # exit code of a command that was stopped, timed out, or was rejected

Event = dict[str, Any]  # A ``BashCommand`` or ``BashOutput`` of the SDK, as JSON


async def run_static_command(
    link: KernelLink, command: str, cwd: str | None, timeout_seconds: float
) -> tuple[int, str, str]:
    """Run a command as an Action in a shell of its own; return exit code, output and error.

    A terminal has one stream, so the output includes stderr. It ends in a newline, which an
    Observation does not report.
    """
    # In parentheses, so that an exit does not end the shell that waits for it.
    args = {
        "command": f"(\n{command}\n)",
        "is_static": True,
        "blocking": True,
        "hidden": True,
        "cwd": cwd,
    }
    action = {"action": "run", "args": args, "timeout": timeout_seconds}
    body = json.dumps({"action": action}).encode()
    try:
        reply = await link.request(ExecuteAction(), body=body, cancellable=True)
    except OhJupyterError as error:
        return NO_EXIT_CODE, "", str(error)
    observation = json.loads(reply.body or b"{}")
    if observation.get("observation") != "run":
        return NO_EXIT_CODE, "", str(observation.get("content", ""))
    metadata = observation["extras"].get("metadata") or {}
    content, omission = str(observation["content"]), str(metadata.get("prefix") or "")
    code = int(metadata.get("exit_code", NO_EXIT_CODE))
    return code, f"{content}\n" if content else "", omission.strip()


class CommandLog:
    """The commands started in one kernel, and their outputs."""

    def __init__(self) -> None:
        self._events: dict[str, Event] = {}
        self._tasks: dict[str, asyncio.Task[Event]] = {}
        self._watchers: Watchers[[Event]] = Watchers()

    def start(
        self, link: KernelLink, command: str, cwd: str | None, timeout_seconds: float
    ) -> Event:
        """Start a command; return its event, whose id names it."""
        fields = {"command": command, "cwd": cwd, "timeout": timeout_seconds}
        started = self._add("BashCommand", fields)
        key = started["id"]
        run = self._run(key, run_static_command(link, command, cwd, timeout_seconds))
        task = self._tasks[key] = asyncio.get_running_loop().create_task(run)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return started

    async def _run(self, key: str, work: Any) -> Event:
        try:
            code, output, error = await work
        except asyncio.CancelledError:
            code, output, error = NO_EXIT_CODE, "", "The command was stopped"
        texts = {"stdout": output or None, "stderr": error or None}
        return self._add("BashOutput", {"command_id": key, "order": 0, "exit_code": code, **texts})

    def _add(self, kind: str, fields: Event) -> Event:
        now = datetime.now(UTC).isoformat()
        event = {"kind": kind, "id": uuid.uuid4().hex, "timestamp": now, **fields}
        self._events[event["id"]] = event
        while len(self._events) > MAX_EVENTS:
            del self._events[next(iter(self._events))]
        self._watchers.tell(event)
        return event

    async def output(self, key: str) -> Event:
        """Wait for the output of a command; cancelling the wait stops the command."""
        return await self._tasks[key]

    def stop(self, key: str) -> bool:
        """Stop a command; return False if there is none of that id."""
        if task := self._tasks.get(key):
            task.cancel()
        return key in self._events

    def get(self, key: str) -> Event | None:
        """Return the event of an id."""
        return self._events.get(key)

    def clear(self) -> int:
        """Forget all events and return their number; commands keep running."""
        count = len(self._events)
        self._events.clear()
        return count

    def search(
        self, expected: dict[str, str], *, after_order: int | None = None
    ) -> Iterator[Event]:
        """Yield the events whose fields have these values, oldest first."""
        for event in list(self._events.values()):
            order = event.get("order")
            matches = all(str(event.get(name)) == value for name, value in expected.items())
            if matches and (after_order is None or order is None or order > after_order):
                yield event

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Pass each new event to a function; return one that ends this."""
        return self._watchers.add(listener)

    def close(self) -> None:
        """Stop all commands."""
        for task in list(self._tasks.values()):
            task.cancel()
