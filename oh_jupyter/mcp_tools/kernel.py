"""The kernel behind a set of tools, and the Actions of a call."""

from __future__ import annotations

import asyncio
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import NotApprovedError
from oh_jupyter.operations import Operation, actions, reply_to

R = TypeVar("R")

current_actions: ContextVar[CallActions | None] = ContextVar("current_actions", default=None)
"""Collects the Actions of the current tool call."""

current_notes: ContextVar[list[str] | None] = ContextVar("current_notes", default=None)
"""Collects notes of the kernel for the agent, which follow the result of the current call."""


class RunningAction:
    """An Action of a tool call, by the key of its request."""

    def __init__(self, kernel: Kernel, key: str) -> None:
        self._kernel = kernel
        self._key = key

    async def look(self) -> tuple[str, str]:
        """Return its state, such as waiting, and its last lines of output."""
        asked = actions.Peek(of=self._key)
        progress = reply_to(asked, (await self._kernel.send(asked)).body)
        return progress.state, progress.text

    async def question(self, wait_seconds: float) -> actions.Question | None:
        """Wait until it needs a person's decision; return the question, or None by then."""
        return next(iter(await self._questions(wait_seconds)), None)

    async def decided(self, id: int, wait_seconds: float) -> bool:
        """Wait until a question no longer needs a decision; return whether that is so."""
        questions = await self._questions(wait_seconds, id)
        return all(question.id != id for question in questions)

    async def _questions(self, wait_seconds: float, *known: int) -> list[actions.Question]:
        asked = actions.Confirmations(of=self._key, wait=wait_seconds, known=[*known])
        reply = await self._kernel.send(asked, cancellable=True)
        return reply_to(asked, reply.body)

    async def decide(
        self, id: int, *, approve: bool, why: str, by: str, scope: str = "once"
    ) -> None:
        """Pass on a person's decision; raise ConfirmationError if it no longer waits."""
        decision = actions.Confirm(
            id,
            approve,
            by=by,
            reason=why,
            for_session=scope == "session",
            for_workspace=scope == "workspace",
        )
        await self._kernel.send(decision)


class CallActions:
    """The Actions of one tool call; the last one is current."""

    def __init__(self) -> None:
        self._actions: list[RunningAction] = []
        self._added = asyncio.Event()

    @property
    def current(self) -> RunningAction | None:
        """The Action that started last, or None."""
        return self._actions[-1] if self._actions else None

    def add(self, action: RunningAction) -> None:
        """Add an Action that starts."""
        self._actions.append(action)
        self._added.set()

    async def started(self) -> AsyncIterator[RunningAction]:
        """Yield each Action as it starts."""
        number = 0
        while True:
            self._added.clear()
            while number < len(self._actions):
                yield self._actions[number]
                number += 1
            await self._added.wait()


class Kernel(ABC):
    """A kernel by its id, None for a server's default one."""

    def __init__(self, kernel_id: str | None) -> None:
        self.kernel_id = kernel_id

    @property
    def restart_fault(self) -> str:
        """Why it cannot be restarted, or ""."""
        return ""

    @property
    def is_boxed(self) -> bool:
        """Whether the whole kernel is in a sandbox, and so decides about nothing outside."""
        return False

    @property
    def workspace_of_box(self) -> str:
        """Directory that the sandbox of the whole kernel may change, "" if it is not known."""
        return ""

    @property
    def is_there(self) -> bool:
        """Whether a request need not start it."""
        return True

    def note_incomplete_list(self) -> None:
        """Remember that a list of tools lacks those in the kernel."""
        return

    @abstractmethod
    def other(self, kernel_id: str) -> Kernel:
        """Return another kernel of the same server."""

    def other_for_agents(self, kernel_id: str) -> Kernel:
        """Return another kernel in which the agents of this one may work.

        Raises:
            NotApprovedError: This one is in a sandbox as a whole, and that one is not.
        """
        other = self.other(kernel_id)
        if self.is_boxed and not other.is_boxed:
            raise NotApprovedError(
                "The kernel of that notebook is in no sandbox, unlike this one; nothing was done. "
                "Use the notebook of a sandboxed kernel"
            )
        return other

    @abstractmethod
    async def send(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        load: bool = False,
        key: str = "",
        notes: bool = False,
        cancellable: bool = False,
    ) -> Reply:
        """Ask the runtime for an operation, with a body if the operation has one.

        ``load`` loads oh_jupyter into the kernel first if necessary. ``key`` is a name by which
        other requests refer to this one. With ``notes``, the reply has those for the agent on
        undone changes. Cancelling this call cancels a ``cancellable`` request in the kernel. Raises
        the runtime's error if it rejects the request.
        """

    @abstractmethod
    async def interrupt(self) -> None:
        """Interrupt the running cell."""

    @abstractmethod
    async def restart(self) -> None:
        """Restart the kernel; all variables are lost."""

    def note_activity(self) -> None:
        """Note that the kernel gets something to do."""
        return

    async def request(
        self,
        operation: Operation[Any],
        body: bytes | None = None,
        *,
        load: bool = True,
        key: str = "",
    ) -> Reply:
        """Send a request of the current call, and collect the notes for its agent."""
        notes = current_notes.get()
        reply = await self.send(
            operation, body, load=load, key=key, notes=notes is not None, cancellable=True
        )
        if notes is not None:
            notes += reply.fields.get("notes", ())
        return reply

    async def ask(
        self, operation: Operation[R], body: bytes | None = None, *, load: bool = True
    ) -> R:
        """Send a request of the current call; return the reply."""
        reply = await self.request(operation, body=body, load=load)
        return reply_to(operation, reply.body)

    async def _execute(
        self,
        operation: Operation[R],
        kind: str,
        args: Mapping[str, Any],
        timeout: float | None,
        extensions: Mapping[str, Any] | None = None,
    ) -> R:
        """Execute an Action with a new key for progress polling; return the reply."""
        self.note_activity()
        key = uuid.uuid4().hex
        actions = current_actions.get()
        if actions is not None:
            actions.add(RunningAction(self, key))
        action: dict[str, Any] = {"action": kind, "args": dict(args)}
        if timeout is not None:
            action["timeout"] = timeout
        if extensions:
            action["oh_jupyter"] = dict(extensions)
        body = json.dumps({"action": action}).encode()
        reply = await self.request(operation, body=body, key=key)
        return reply_to(operation, reply.body)

    async def act(
        self,
        kind: str,
        args: Mapping[str, Any],
        timeout: float | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Execute an Action with a hard timeout in seconds; return its Observation's wire form.

        ``extensions`` are arguments that OpenHands' protocol lacks.
        """
        # Paths are relative to the shell's directory, as in an agent's other tools.
        operation = actions.ExecuteAction(relative_paths=True)
        return await self._execute(operation, kind, args, timeout, extensions)

    async def run_cell(
        self,
        args: Mapping[str, Any],
        timeout: float | None = None,
        *,
        begin_within: float | None = None,
        store_history: bool = False,
    ) -> actions.CellResult:
        """Run a cell; return its result.

        It is interrupted after ``timeout`` seconds; without a timeout, it is withdrawn unless it
        begins in time. ``store_history`` numbers it like a person's.
        """
        operation = actions.RunCell(store_history=store_history, begin_within=begin_within)
        return await self._execute(operation, "run_ipython", args, timeout)
