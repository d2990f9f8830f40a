"""A cell as a message to a kernel, and the wait for all that comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from oh_jupyter.cells.outputs import Outputs

__all__ = ["AGENT_USERNAME", "CellRequest", "execute_content"]

AGENT_USERNAME = "openhands"
"""Username in the headers of our requests: frontends know the agent's cells by it."""

LARGEST = 64 * 1024**2
"""Bytes of an output in one piece that is read; of a larger one only its size is told."""

GRACE = 2.0
"""Seconds that a cell gets to end after it was interrupted."""


def execute_content(code: str, silent: bool) -> dict[str, Any]:
    """The content of an ``execute_request`` for a program's cell.

    It asks nobody for input, and its failure does not abort what people have queued.

    Args:
        code: The cell.
        silent: Show it to nobody.

    Returns:
        The content.
    """
    return {
        "code": code,
        "silent": silent,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }


class CellRequest:
    """A cell that was sent, and what has come of it so far.

    Attributes:
        msg_id: Id of the request.
        outputs: Its outputs.
        status: Status of the reply, "" before it.
        replied: Whether the reply has come.
        idle: Whether the kernel was idle again.
        done: Set when both have come.
    """

    def __init__(self, msg_id: str) -> None:
        """Begin with nothing.

        Args:
            msg_id: Id of the request.
        """
        self.msg_id = msg_id
        self.outputs = Outputs()
        self.status = ""
        self.replied = False
        self.idle = False
        self.done = asyncio.Event()

    async def finish(
        self, timeout: float | None, interrupt: Callable[[str], Awaitable[object]]
    ) -> bool:
        """Wait for reply and idle, and interrupt the cell when its time is over.

        Args:
            timeout: Seconds; None for no limit.
            interrupt: Called with the request's id, also when the wait is cancelled.

        Returns:
            Whether the time was over before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self.done.wait()
            return False
        except TimeoutError:
            await interrupt(self.msg_id)
            # Code may catch the interrupt and go on: then this is all there is to tell.
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self.done.wait()
            return True
        except asyncio.CancelledError:
            await interrupt(self.msg_id)
            raise

    def take(self, msg_type: str, content: dict[str, Any]) -> None:
        """Take a message that has the request as its parent.

        Args:
            msg_type: Its type.
            content: Its content.
        """
        if msg_type == "execute_reply":
            self.replied = True
            self.status = content.get("status", "")
        elif msg_type == "status":
            self.idle = content["execution_state"] == "idle"
        else:
            self.outputs.add_message(msg_type, content)
        if self.replied and self.idle:
            self.done.set()
