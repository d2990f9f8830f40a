"""A cell as a message to a kernel, and the wait for its reply and outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.events.action import progress

AGENT_USERNAME = "openhands"
"""Username in the headers of our requests, by which frontends recognize the agent's cells."""

MAX_OUTPUT_BYTES = 64 * 1024**2
"""Maximum size of one output message; only the size of a larger one is reported."""

NEVER_BEGAN = "The cell never began: the kernel runs another one"

ENDS_KERNEL = "[The cell ends the kernel: all variables are lost, and the shell and browser end.]\n"

_INTERRUPT_GRACE_SECONDS = 2.0  # for a cell to end after an interrupt


stores_history: ContextVar[bool] = ContextVar("stores_history", default=False)
"""Whether a cell gets a number and an entry in ``In`` and ``Out``, like a person's."""


begin_within: ContextVar[float | None] = ContextVar("begin_within", default=None)
"""Seconds in which a cell must begin; later, the runner of the kernel's own shell withdraws it."""


cell_trace: ContextVar[Mapping[str, str]] = ContextVar("cell_trace", default={})  # noqa: B039
"""W3C trace context of a cell, sent as metadata of its request."""


def execute_content(code: str, silent: bool) -> dict[str, Any]:
    """Return an ``execute_request`` that asks for no input and aborts no other cells."""
    return {
        "code": code,
        "silent": silent,
        "store_history": stores_history.get() and not silent,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def pages_of(payload: Any) -> list[dict[str, Any]]:
    """Return what a cell shows in IPython's pager, such as the help of ``len?``."""
    return [
        page["data"]
        for page in (payload if isinstance(payload, list) else [])
        if page.get("source") == "page" and isinstance(page.get("data"), dict)
    ]


class CellRequest:
    """A sent cell, and its state."""

    def __init__(self, msg_id: str, silent: bool = False) -> None:
        self.msg_id = msg_id
        # A kernel ignores interrupts between its status and the start of the code.
        self._starts_with = "status" if silent else "execute_input"
        self._progress = progress.get()
        self.outputs = OutputCollector()
        self.status = ""
        self.started = asyncio.Event()
        self._cancelled = False
        self._error: Exception | None = None
        self.has_begun = False
        self.replied = False
        self._pages: list[dict[str, Any]] = []
        self._ends_kernel = False
        self.idle = False
        self.done = asyncio.Event()

    async def wait(
        self, timeout: float | None, interrupt: Callable[[CellRequest], Awaitable[object]]
    ) -> bool:
        """Wait for reply and idle; True if interrupted after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self.done.wait()
        except TimeoutError:
            await self._cancel(interrupt)
            # Code may catch the interrupt and continue; its later outputs are not collected.
            await self.wait_after_interrupt()
            return True
        except asyncio.CancelledError:
            await self._cancel(interrupt)
            raise
        if self._error is not None:
            raise self._error
        return False

    async def begins(
        self, within_seconds: float, interrupt: Callable[[CellRequest], Awaitable[object]]
    ) -> bool:
        """Return whether it begins, or ends, in time."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_seconds):
                    await self.started.wait()
        except asyncio.CancelledError:
            await self._cancel(interrupt)
            raise
        return self.started.is_set()

    @property
    def note(self) -> str:
        """The cell that holds the kernel after the timeout, as a sentence, or ""."""
        if not self.has_begun:
            return NEVER_BEGAN
        return "" if self.done.is_set() else "The cell ignored the interrupt and still runs"

    @property
    def needs_retry(self) -> bool:
        """Whether the failure of another client's cell aborted this one in the queue."""
        return self.status == "aborted" and not self._cancelled

    async def wait_after_interrupt(self) -> None:
        """Wait for the end, but not longer than the grace period after an interrupt."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_INTERRUPT_GRACE_SECONDS):
                await self.done.wait()

    async def _cancel(self, interrupt: Callable[[CellRequest], Awaitable[object]]) -> None:
        self._cancelled = True
        self._check_done()
        await interrupt(self)

    def handle(self, msg_type: str, content: dict[str, Any]) -> None:
        """Process a message whose parent is the request."""
        if msg_type == "execute_reply":
            self.replied = True
            self.status = content.get("status", "")
            self._pages = pages_of(content.get("payload"))
            self._ends_kernel = any(
                each.get("source") == "ask_exit" for each in content.get("payload") or ()
            )
        elif msg_type == "status":
            self.idle = content["execution_state"] == "idle"
        else:
            if msg_type == "execute_input":
                self.has_begun = True
                self._progress.begin()
            self.outputs.add_message(msg_type, content)
        if msg_type == self._starts_with and not self.idle:
            self.started.set()
        self._check_done()

    def _check_done(self) -> None:
        # After an interrupt before the code of the cell, ipykernel does not reply.
        if self.idle and (self.replied or self._cancelled):
            while self._pages:
                self.outputs.add_display(self._pages.pop(0))
            if self._ends_kernel:
                self._ends_kernel = False
                self.outputs.add_stream(ENDS_KERNEL, "stderr")
            self._end()

    def fail(self, error: Exception) -> None:
        """End the request with an error, which ``wait`` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self.started.set()
        self.done.set()
