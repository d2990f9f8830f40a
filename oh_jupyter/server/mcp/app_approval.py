"""Approval of waiting Actions in an MCP App, which a client shows beside a tool call.

An app knows its call by the tool and the arguments. It decides only about calls of its own session,
and only with the key of the question. The key is in a result's ``_meta``, which clients do not show
to models: a model that calls the app's tools although its client should not let it has no key.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events.actor import current_actor
from oh_jupyter.mcp_tools.app_tools import APPROVAL, LOOK_SECONDS, ONLY_APPS
from oh_jupyter.mcp_tools.kernel import CallActions, RunningAction
from oh_jupyter.mcp_tools.results import Result, failure, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema
from oh_jupyter.operations.actions import Question
from oh_jupyter.server.mcp.approval import BY

PENDING, DECIDE = "pending_approval", "decide_approval"

KEY = "oh_jupyter/approval"
"""Field of a result's ``_meta`` with the key of a question."""

_SHOWN = ("id", "message", "agent", "reason", "diff", "seconds_left", "sandboxed")


def with_approval(tool: McpTool) -> McpTool:
    """Return a tool beside whose calls a client shows the approval, if they may need one."""
    may_ask = tool.hints.get("destructiveHint") or tool.hints.get("openWorldHint")
    return replace(tool, ui={"resourceUri": APPROVAL}) if may_ask and tool.ui is None else tool


@dataclass(eq=False)
class _OpenCall:
    """A running call of a tool, with the questions that its app was given."""

    owner: tuple[str, str]
    call: str
    actions: CallActions
    over: asyncio.Event = field(default_factory=asyncio.Event)
    asked: dict[str, tuple[RunningAction, int]] = field(default_factory=dict)


class AppApprovals:
    """The calls that apps may ask about, of every session of a server."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._started = asyncio.Event()

    @contextmanager
    def during(
        self, tool: str, arguments: Mapping[str, Any], caller: Caller, actions: CallActions
    ) -> Iterator[None]:
        """Let the app of a call find its questions while the call runs."""
        call = _OpenCall(_owner(caller), _identity(tool, arguments), actions)
        self._calls.append(call)
        self._started.set()
        try:
            yield
        finally:
            self._calls.remove(call)
            call.over.set()

    def tools(self) -> list[McpTool]:
        """Return the tools for the app."""
        return [
            McpTool(
                PENDING,
                "Wait for the question about a running call, for the app that shows it.",
                schema(
                    "tool",
                    "arguments",
                    tool={"type": "string", "description": "Tool of the call."},
                    arguments={"type": "object", "description": "Its arguments."},
                    known={"type": "integer", "description": "Id of the question on display."},
                ),
                self._pending,
                {"readOnlyHint": True},
                rest="",
                listed=False,
                ui=ONLY_APPS,
            ),
            McpTool(
                DECIDE,
                "Pass on the person's decision, for the app that shows the question.",
                schema(
                    "key",
                    "approve",
                    key={"type": "string", "description": "Key of the question."},
                    approve={"type": "boolean"},
                    reason={"type": "string", "description": "For a rejection."},
                    scope={"type": "string", "enum": ["once", "session", "workspace"]},
                ),
                self._decide,
                {"destructiveHint": True},
                listed=False,
                ui=ONLY_APPS,
            ),
        ]

    async def _pending(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the next question of a call, or what became of the known one."""
        owner = _owner(caller)
        identity = _identity(arguments["tool"], arguments["arguments"])
        known = arguments.get("known")
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                call = await self._find(owner, identity, known)
                news = None if call is None else await _news(call, known)
        except TimeoutError:
            return _state("running" if known is None else "same")
        if call is None or news is None:
            return _state("over")
        action, question = news
        if question is None:
            return _state("running")
        key = secrets.token_urlsafe()
        call.asked[key] = (action, question.id)
        shown = {name: getattr(question, name) for name in _SHOWN}
        return {**_state("waiting", question=shown), "_meta": {KEY: key}}

    async def _find(self, owner: tuple[str, str], identity: str, known: Any) -> _OpenCall | None:
        """Wait for a call, or return None if the one with the known question has ended."""
        while True:
            self._started.clear()
            for call in self._calls:
                is_same = known is None or known in [id for _, id in call.asked.values()]
                if (call.owner, call.call) == (owner, identity) and is_same:
                    return call
            if known is not None:
                return None
            await self._started.wait()

    async def _decide(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Pass on a decision about a question with its key."""
        owner = _owner(caller)
        for call in self._calls:
            if call.owner == owner and arguments["key"] in call.asked:
                action, id = call.asked[arguments["key"]]
                await action.decide(
                    id,
                    approve=arguments["approve"],
                    why=arguments.get("reason", ""),
                    by=BY,
                    scope=arguments.get("scope", "once"),
                )
                return result(text("Approved." if arguments["approve"] else "Rejected."))
        return failure(
            "There is no question with this key. It may be decided, or its call has ended; only "
            "the person decides, in the app or in JupyterLab."
        )


async def _news(call: _OpenCall, known: int | None) -> tuple[RunningAction, Question | None] | None:
    """Wait until a call asks, or no longer asks the known question; None once it is over."""
    news: list[tuple[RunningAction, Question | None]] = []
    async with anyio.create_task_group() as group:

        async def ask(action: RunningAction) -> None:
            with suppress(OhJupyterError):  # the kernel is gone, and the call ends
                while (question := await action.question(LOOK_SECONDS)) is None:
                    pass
                news.append((action, question))
                group.cancel_scope.cancel()

        async def ask_all() -> None:
            async for action in call.actions.started():
                group.start_soon(ask, action)

        async def until_decided(action: RunningAction, id: int) -> None:
            with suppress(OhJupyterError):
                while not await action.decided(id, LOOK_SECONDS):
                    pass
                news.append((action, None))
                group.cancel_scope.cancel()

        async def until_over() -> None:
            await call.over.wait()
            group.cancel_scope.cancel()

        group.start_soon(until_over)
        asking = next((each for each in call.asked.values() if each[1] == known), None)
        if asking is None:
            group.start_soon(ask_all)
        else:
            group.start_soon(until_decided, *asking)
    return news[0] if news else None


def _state(state: str, **more: Any) -> Result:
    return {**result(text(state)), "structuredContent": {"state": state, **more}}


def _owner(caller: Caller) -> tuple[str, str]:
    """Return whose session the current request belongs to."""
    return caller.principal, current_actor.get().session


def _identity(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)
