"""Calls that wait for a person's approval after their clients got their turn back.

The question stays open, and the call continues when a person approves. The same call again waits
for that, and returns its result, so that nothing runs twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.mcp_tools.kernel import CallActions, RunningAction
from oh_jupyter.mcp_tools.results import Result, result, text
from oh_jupyter.operations.actions import Question
from oh_jupyter.server.mcp.tasks import digest

FIRST_LOOK_SECONDS = 30.0
"""Time that a call takes before the first look for a question; most calls end before."""

PATIENCE_SECONDS = 15.0
"""Further time for the person. Many clients give up after 60 s."""

WAIT_SECONDS = 60.0
"""Longest wait for a question in one request to the kernel."""

RETENTION_SECONDS = 900.0
"""Time for which the result of such a call is kept for the same call again."""

Owner = tuple[str, str]
"""Principal and session of a client."""


@dataclass(eq=False)
class _Call:
    """A call that may have outlived its request."""

    task: asyncio.Task[Result]
    actions: CallActions


class UndecidedCalls:
    """The calls of all clients that wait for a person."""

    def __init__(self) -> None:
        self._calls: dict[tuple[Owner, str], list[_Call]] = {}

    def begin(
        self,
        request: ToolRequest,
        owner: Owner,
        work: Callable[[], Awaitable[Result]],
        actions: CallActions,
    ) -> Callable[[], Awaitable[Result]]:
        """Start a call, or find the same earlier one; return a function that waits for it."""
        key = (owner, digest(request))
        if earlier := self._calls.get(key):
            call = earlier.pop(0)
            if call.actions.current is not None:
                actions.add(call.actions.current)
        else:
            call = _Call(asyncio.ensure_future(work()), actions)
        return partial(self._result, key, request.name, call)

    async def _result(self, key: tuple[Owner, str], tool: str, call: _Call) -> Result:
        """Return the result of a call, or what it waits for."""
        try:
            question = await _open_question(call)
        except asyncio.CancelledError:  # the client has left
            call.task.cancel()
            await asyncio.wait({call.task})
            raise
        if question is None:
            return await call.task
        self._keep(key, call)
        return result(text(_report(question, tool)))

    def _keep(self, key: tuple[Owner, str], call: _Call) -> None:
        """Keep a call for the same one again."""
        self._calls.setdefault(key, []).append(call)
        loop = asyncio.get_running_loop()
        call.task.add_done_callback(
            lambda _: loop.call_later(RETENTION_SECONDS, self._forget, key, call)
        )

    def _forget(self, key: tuple[Owner, str], call: _Call) -> None:
        with suppress(KeyError, ValueError):
            self._calls[key].remove(call)
            if not self._calls[key]:
                del self._calls[key]

    def end_session(self, owner: Owner) -> None:
        """End the calls of a session that has ended."""
        for key in [key for key in self._calls if key[0] == owner]:
            for call in self._calls.pop(key):
                call.task.cancel()

    def close(self) -> None:
        """End all calls."""
        for owner in {owner for owner, _ in self._calls}:
            self.end_session(owner)


async def _open_question(call: _Call) -> Question | None:
    """Wait for the end of a call; return a question that stays open for long before it, or None."""
    await asyncio.wait({call.task}, timeout=FIRST_LOOK_SECONDS)
    asking = asyncio.ensure_future(_long_open(call.actions))
    try:
        await asyncio.wait({call.task, asking}, return_when=asyncio.FIRST_COMPLETED)
        return None if call.task.done() else asking.result()
    finally:
        asking.cancel()


async def _long_open(actions: CallActions) -> Question:
    """Wait until a person has not decided about an Action for long; return the question."""
    questions: list[Question] = []
    async with anyio.create_task_group() as group:

        async def watch(action: RunningAction) -> None:
            with suppress(OhJupyterError):  # the kernel is gone, and the call ends
                while (question := await action.question(WAIT_SECONDS)) is None:
                    pass
                if not await action.decided(question.id, PATIENCE_SECONDS):
                    questions.append(question)
                    group.cancel_scope.cancel()

        async for action in actions.started():
            group.start_soon(watch, action)
    return questions[0]


def _report(question: Question, tool: str) -> str:
    """Return what an agent has to know about a call that waits."""
    seconds = max(question.seconds_left - PATIENCE_SECONDS, 0)
    left = f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
    return (
        f"It has not run yet: action {question.id} waits for a person's approval, because "
        f"{question.reason}. The question stays open for {left}. Tell the person what "
        f"waits; they decide in JupyterLab or with %oh_confirm {question.id}. Call {tool} again "
        "with the same arguments to wait for the decision and get the result: it is not asked or "
        "run twice. If a person approves it before that, it runs at once. If nobody decides in "
        "time, or you end the session, it never runs."
    )
