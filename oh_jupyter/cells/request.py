"""A cell as a message to a kernel, and the wait for all that comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.events.action import progress

AGENT_USERNAME = "openhands"
"""Username in the headers of our requests: frontends know the agent's cells by it."""

MAX_OUTPUT_BYTES = 64 * 1024**2
"""Bytes of an output in one piece that is read; of a larger one only its size is told."""

INTERRUPT_GRACE_SECONDS = 2.0
"""Seconds that a cell gets to end after it was interrupted."""


stores_history: ContextVar[bool] = ContextVar("stores_history", default=False)
"""Whether a cell gets its own number and its place in ``In`` and ``Out``, as a person's does."""


def execute_content(code: str, silent: bool) -> dict[str, Any]:
    """Content of an ``execute_request`` that asks for no input and aborts nobody's cells."""
    return {
        "code": code,
        "silent": silent,
        "store_history": stores_history.get() and not silent,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }


class CellRequest:
    """A cell that was sent, and what has come of it so far."""

    def __init__(self, msg_id: str, silent: bool = False) -> None:
        self.msg_id = msg_id
        # A kernel ignores interrupts between its status and the begin of the code.
        self._begins_with = "status" if silent else "execute_input"
        self._progress = progress.get()
        self.outputs = OutputCollector()
        self.status = ""
        self.begun = asyncio.Event()
        self._given_up = False
        self._problem: Exception | None = None
        self.replied = False
        self.idle = False
        self.done = asyncio.Event()

    async def wait(
        self, timeout: float | None, interrupt: Callable[[CellRequest], Awaitable[object]]
    ) -> bool:
        """Wait for reply and idle; True if it was interrupted after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self.done.wait()
        except TimeoutError:
            await self._give_up(interrupt)
            # Code may catch the interrupt and go on: then this is all there is to tell.
            await self.wait_after_interrupt()
            return True
        except asyncio.CancelledError:
            await self._give_up(interrupt)
            raise
        if self._problem is not None:
            raise self._problem
        return False

    @property
    def is_to_be_repeated(self) -> bool:
        """Whether a failing cell of somebody else's aborted what waited behind it."""
        return self.status == "aborted" and not self._given_up

    async def wait_after_interrupt(self) -> None:
        """Wait until it ends, but no longer than a cell gets to end after an interrupt."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERRUPT_GRACE_SECONDS):
                await self.done.wait()

    async def _give_up(self, interrupt: Callable[[CellRequest], Awaitable[object]]) -> None:
        self._given_up = True
        self._look_whether_done()
        await interrupt(self)

    def handle(self, msg_type: str, content: dict[str, Any]) -> None:
        """Take a message that has the request as its parent."""
        if msg_type == "execute_reply":
            self.replied = True
            self.status = content.get("status", "")
        elif msg_type == "status":
            self.idle = content["execution_state"] == "idle"
        else:
            if msg_type == "execute_input":
                self._progress.begin()
            self.outputs.add_message(msg_type, content)
        if msg_type == self._begins_with and not self.idle:
            self.begun.set()
        self._look_whether_done()

    def _look_whether_done(self) -> None:
        # An interrupt before the code of the cell keeps ipykernel from replying.
        if self.idle and (self.replied or self._given_up):
            self._end()

    def fail(self, problem: Exception) -> None:
        """End it with an error, for who waits for it."""
        self._problem = problem
        self._end()

    def _end(self) -> None:
        self.begun.set()
        self.done.set()
