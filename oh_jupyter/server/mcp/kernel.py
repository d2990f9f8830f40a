"""The kernel behind a set of tools, and the tools that live in it."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from oh_jupyter.errors import ExtensionMissingError, OhJupyterError
from oh_jupyter.server.links import KernelLink, Reply
from oh_jupyter.server.mcp.results import Result, of_observation, text_alone
from oh_jupyter.server.mcp.toolbox import (
    Caller,
    McpTool,
    current_notes,
    skills_listed,
)
from oh_jupyter.server.router import Router

WATCH_INTERVAL_SECONDS = 60.0  # interval in which a watch checks that somebody still listens

current_actions: ContextVar[CallActions | None] = ContextVar("current_actions", default=None)
"""Collects the Actions of the current tool call."""

SKILL_PREFIX = "skill_"  # prefix of skills' names: agents may have tools with the same names


class RunningAction:
    """An Action of a tool call, by the key of its request."""

    def __init__(self, kernel: Kernel, key: str) -> None:
        self._kernel = kernel
        self._key = key

    async def look(self) -> tuple[str, str]:
        """Return its state, such as waiting, and its last lines of output."""
        reply = await (await self._kernel.link()).request("peek", {"of": self._key}, load=False)
        return str(reply.fields["state"]), str(reply.fields["text"])

    async def question(self, wait_seconds: float) -> dict[str, Any] | None:
        """Wait until it needs a person's decision; return the question, or None by then."""
        fields = {"of": self._key, "wait": wait_seconds}
        link = await self._kernel.link()
        reply = await link.request("confirmations", fields, load=False, cancellable=True)
        return next(iter(reply.fields["waiting"]), None)

    async def decide(self, id: int, *, approve: bool, why: str, by: str) -> None:
        """Pass on a person's decision; raise ConfirmationError if it no longer waits."""
        fields = {"id": id, "approve": approve, "why": why, "by": by}
        await (await self._kernel.link()).request("confirm", fields, load=False)


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


class Kernel:
    """One kernel of the server, or the current default one.

    Attributes:
        has_listeners: Returns whether any session follows changes of the tools.
    """

    def __init__(
        self,
        router: Router,
        kernel_id: str | None,
        touch: Callable[[], None] = lambda: None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """Name a kernel; the first request starts and connects it.

        ``touch`` is called when it gets something to do, ``changed`` when its tools have changed.
        """
        self._router = router
        self._touch = touch
        self._changed = changed
        self._tools_version: tuple[str, int] | None = None
        self._listed_incompletely = False
        self._watch: asyncio.Task[None] | None = None
        self.has_listeners: Callable[[], bool] = lambda: False
        self.kernel_id = kernel_id

    @property
    def is_there(self) -> bool:
        """Whether a request need not start it."""
        return self.kernel_id is not None or self._router.default_kernel_id is not None

    def note_incomplete_list(self) -> None:
        """Remember that a list lacks its tools, to announce them with its first reply."""
        self._listed_incompletely = True

    def other(self, kernel_id: str) -> Kernel:
        """Return another kernel of the same server."""
        return Kernel(self._router, kernel_id, self._touch)

    async def link(self) -> KernelLink:
        """Return the link to it, or raise KernelError if it is unknown or cannot be started."""
        if self.kernel_id is None:
            return await self._router.default()
        return self._router.link(self.kernel_id)

    async def request(
        self,
        operation: str,
        fields: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
    ) -> Reply:
        """Send a request to its runtime; cancelling this call cancels the request."""
        link = await self.link()
        notes = current_notes.get()
        if notes is not None:
            fields = {**(fields or {}), "notes": True}
        reply = await link.request(operation, fields, body, load=load, cancellable=True)
        if notes is not None:
            notes += reply.fields.get("notes", ())
        if self._listed_incompletely:
            self._listed_incompletely = False
            self._changed()
        if (
            self._check_version(reply)
            and self.has_listeners()
            and (self._watch is None or self._watch.done())
        ):
            self._watch = asyncio.create_task(self._watch_tools(link))
        return reply

    def _check_version(self, reply: Reply) -> bool:
        """Notice changed tools by the version in a reply; return whether it has one."""
        if "tools" not in reply.fields:
            return False
        now = (str(reply.fields.get("generation")), int(reply.fields["tools"]))
        before, self._tools_version = self._tools_version, now
        if before not in (None, now):
            self._changed()
        return True

    async def _watch_tools(self, link: KernelLink) -> None:
        """Poll the kernel for changed tools while any session follows them."""
        try:
            while self.has_listeners() and self._tools_version is not None:
                fields = {"known": self._tools_version[1], "wait": WATCH_INTERVAL_SECONDS}
                self._check_version(await link.request("tools_changed", fields, load=False))
        except OhJupyterError:
            return  # the next reply of this or another kernel has the version

    def close(self) -> None:
        """Stop background work."""
        if self._watch is not None:
            self._watch.cancel()

    async def _execute(
        self,
        operation: str,
        kind: str,
        args: Mapping[str, Any],
        timeout: float | None,
        **fields: Any,
    ) -> Any:
        """Execute an Action with a new key for progress polling; return the JSON of the reply."""
        self._touch()
        key = uuid.uuid4().hex
        actions = current_actions.get()
        if actions is not None:
            actions.add(RunningAction(self, key))
        action: dict[str, Any] = {"action": kind, "args": dict(args)}
        if timeout is not None:
            action["timeout"] = timeout
        body = json.dumps({"action": action}).encode()
        reply = await self.request(operation, {"key": key, **fields}, body)
        return json.loads(reply.body or b"{}")

    async def act(self, kind: str, args: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Execute an Action with a hard timeout in seconds; return its Observation's wire form."""
        # Paths are relative to the shell's directory, as in an agent's other tools.
        return await self._execute("execute_action", kind, args, timeout, relative_paths=True)

    async def run_cell(
        self,
        args: Mapping[str, Any],
        timeout: float | None = None,
        *,
        store_history: bool = False,
    ) -> Any:
        """Run a cell; return its Observation's wire form, notebook outputs and execution count.

        It is interrupted after ``timeout`` seconds. ``store_history`` numbers it like a person's.
        """
        return await self._execute(
            "run_cell", "run_ipython", args, timeout, store_history=store_history
        )


@dataclass(frozen=True)
class KernelTools:
    """The tools in the kernel: those of MCP servers behind it, and skills on request.

    Skills have a prefix: one called ``file_editor`` would end the conversation of an agent that
    has its own tool of that name.
    """

    _kernel: Kernel
    _taken: list[str]  # names in use; a tool with one of them is prefixed by its server's name

    async def tools(self, start: bool) -> list[McpTool]:
        """Return the tools; without ``start``, neither start the kernel nor load anything in it."""
        if not (start or self._kernel.is_there):
            self._kernel.note_incomplete_list()
            return []
        fields = {"taken": self._taken, "skills": skills_listed.get()}
        try:
            reply = await self._kernel.request("tools", fields, load=start)
        except ExtensionMissingError:
            if start:
                raise
            self._kernel.note_incomplete_list()
            return []
        skills = set(reply.fields.get("skills", ()))
        return [
            self._skill(wire) if wire["name"] in skills else self._tool(wire)
            for wire in json.loads(reply.body or b"[]")
        ]

    def _skill(self, wire: dict[str, Any]) -> McpTool:
        return self._tool(wire, prefix=SKILL_PREFIX, rest=McpTool.rest)

    def _tool(self, wire: dict[str, Any], prefix: str = "", rest: str = "") -> McpTool:
        name = str(wire["name"])

        async def call(arguments: dict[str, Any], caller: Caller) -> Result:
            args = {"name": name, "arguments": arguments}
            result = of_observation(await self._kernel.act("call_tool_mcp", args))
            # Unannounced structure would only hide the text from agents.
            return result if "outputSchema" in wire else text_alone(result)

        # The tool's own server checks its arguments and bounds its results.
        description = str(wire.get("description") or "")
        return McpTool(f"{prefix}{name}", description, {}, call, rest=rest, wire=wire)

    def close(self) -> None:
        """Stop background work."""
        self._kernel.close()
