"""Commands of OpenHands' SDK: started by one request, and asked for by others."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from oh_jupyter.background import Watchers
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.server.links import KernelLink

MAX_EVENTS = 2000
"""Events that are kept of a kernel; of more, the oldest are forgotten."""

NO_EXIT_CODE = -1
"""Exit code of what did not end by itself: it was stopped, took too long, or was rejected."""

Event = dict[str, Any]
"""A ``BashCommand`` or ``BashOutput`` of the SDK, as JSON."""


async def static_command(
    link: KernelLink, command: str, cwd: str | None, timeout_seconds: float
) -> tuple[int, str, str]:
    """Exit code, output and problem of a command in a shell of its own, an Action like any other.

    A terminal has one output, so what the command says to stderr is in it, too.
    Its last line ends, as that of nearly every command's output; an Observation does not say.
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
        reply = await link.request("execute_action", body=body, cancellable=True)
    except OhJupyterError as problem:
        return NO_EXIT_CODE, "", str(problem)
    found = json.loads(reply.body or b"{}")
    if found.get("observation") != "run":
        return NO_EXIT_CODE, "", str(found.get("content", ""))
    metadata = found["extras"].get("metadata") or {}
    content, left_out = str(found["content"]), str(metadata.get("prefix") or "")
    code = int(metadata.get("exit_code", NO_EXIT_CODE))
    return code, f"{content}\n" if content else "", left_out.strip()


class CommandLog:
    """The commands that were started in one kernel, and what they have put out."""

    def __init__(self) -> None:
        self._events: dict[str, Event] = {}
        self._tasks: dict[str, asyncio.Task[Event]] = {}
        self._watchers: Watchers[[Event]] = Watchers()

    def start(
        self, link: KernelLink, command: str, cwd: str | None, timeout_seconds: float
    ) -> Event:
        """Start a command; its event, whose id names it."""
        asked = {"command": command, "cwd": cwd, "timeout": timeout_seconds}
        started = self._add("BashCommand", asked)
        key = started["id"]
        run = self._run(key, static_command(link, command, cwd, timeout_seconds))
        task = self._tasks[key] = asyncio.get_running_loop().create_task(run)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return started

    async def _run(self, key: str, work: Any) -> Event:
        try:
            code, output, problem = await work
        except asyncio.CancelledError:
            code, output, problem = NO_EXIT_CODE, "", "The command was stopped"
        told = {"stdout": output or None, "stderr": problem or None}
        return self._add("BashOutput", {"command_id": key, "order": 0, "exit_code": code, **told})

    def _add(self, kind: str, fields: Event) -> Event:
        now = datetime.now(UTC).isoformat()
        event = {"kind": kind, "id": uuid.uuid4().hex, "timestamp": now, **fields}
        self._events[event["id"]] = event
        while len(self._events) > MAX_EVENTS:
            del self._events[next(iter(self._events))]
        self._watchers.tell(event)
        return event

    async def ended(self, key: str) -> Event:
        """What a command has put out when it has ended; who waits no longer stops it."""
        return await self._tasks[key]

    def stop(self, key: str) -> bool:
        """Stop a command; False if there is none of that id."""
        if task := self._tasks.get(key):
            task.cancel()
        return key in self._events

    def get(self, key: str) -> Event | None:
        """The event of an id."""
        return self._events.get(key)

    def clear(self) -> int:
        """Forget all events; how many there were. What runs goes on."""
        count = len(self._events)
        self._events.clear()
        return count

    def search(self, wanted: dict[str, str], *, after_order: int | None = None) -> Iterator[Event]:
        """The events whose fields have these values, oldest first."""
        for event in list(self._events.values()):
            order = event.get("order")
            fits = all(str(event.get(name)) == value for name, value in wanted.items())
            if fits and (after_order is None or order is None or order > after_order):
                yield event

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Have each new event told until the function that is returned is called."""
        return self._watchers.add(listener)

    def close(self) -> None:
        """Stop everything: the server ends."""
        for task in list(self._tasks.values()):
            task.cancel()
