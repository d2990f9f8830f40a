"""The kernel that a set of tools works on, and its own tools."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from oh_jupyter.errors import ExtensionMissingError, OhJupyterError
from oh_jupyter.server.links import KernelLink, Reply
from oh_jupyter.server.mcp.results import Result, of_observation, result, text, text_alone
from oh_jupyter.server.mcp.toolbox import Caller, Tool, schema, skills_shown
from oh_jupyter.server.router import Router

WATCH_INTERVAL_SECONDS = 60.0
"""Seconds after which a watch looks whether anybody still listens."""

Look = Callable[[], Awaitable[tuple[str, str]]]
"""Tells the state of an Action, such as waiting, and the last lines that it has put out."""

under_way: ContextVar[list[Look] | None] = ContextVar("under_way", default=None)
"""Where a tool call notes how to look at what a kernel does for it."""

SKILL_PREFIX = "skill_"
"""Before the names of skills: agents may have tools of the same names."""

DEFAULT_EVENT_COUNT = 20
"""Events that are listed when no number is given."""


class Kernel:
    """One kernel of the server, or the default one, whichever that is at the moment.

    Attributes:
        listens: Tells whether anybody wants to hear of other tools.
    """

    def __init__(
        self,
        router: Router,
        kernel_id: str | None,
        touch: Callable[[], None] = lambda: None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """Name a kernel; it is started and connected to when it is first asked.

        ``touch`` is called when it is asked to do something, ``changed`` when an answer shows that
        its tools are others than before.
        """
        self._router = router
        self._touch = touch
        self._changed = changed
        self._known: tuple[str, int] | None = None
        self._listed_without = False
        self._watch: asyncio.Task[None] | None = None
        self.listens: Callable[[], bool] = lambda: False
        self.kernel_id = kernel_id

    @property
    def is_there(self) -> bool:
        """Whether it can be asked without being started for it."""
        return self.kernel_id is not None or self._router.default_kernel_id is not None

    def list_without(self) -> None:
        """Take note that a list lacks its tools: they are told of when it first answers."""
        self._listed_without = True

    def other(self, kernel_id: str) -> Kernel:
        """Another kernel of the same server."""
        return Kernel(self._router, kernel_id, self._touch)

    async def link(self) -> KernelLink:
        """The link to it; KernelError if there is no such kernel, or it cannot be started."""
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
        """Ask the runtime in it; when this is cancelled, so is what was asked."""
        link = await self.link()
        reply = await link.request(operation, fields, body, load=load, cancellable=True)
        if self._listed_without:
            self._listed_without = False
            self._changed()
        if self._notice(reply) and self.listens() and (self._watch is None or self._watch.done()):
            self._watch = asyncio.create_task(self._watch_tools(link))
        return reply

    def _notice(self, reply: Reply) -> bool:
        """Notice other tools by the number that comes with answers, and by a new generation."""
        if "tools" not in reply.fields:
            return False
        now = (str(reply.fields.get("generation")), int(reply.fields["tools"]))
        before, self._known = self._known, now
        if before not in (None, now):
            self._changed()
        return True

    async def _watch_tools(self, link: KernelLink) -> None:
        """Have the kernel say when there are other tools, while somebody listens."""
        try:
            while self.listens() and self._known is not None:
                fields = {"known": self._known[1], "wait": WATCH_INTERVAL_SECONDS}
                self._notice(await link.request("tools_changed", fields, load=False))
        except OhJupyterError:
            return  # the next answer of the kernel, or of another one, tells

    def close(self) -> None:
        """End what goes on in the background."""
        if self._watch is not None:
            self._watch.cancel()

    async def _look(self, key: str) -> tuple[str, str]:
        reply = await (await self.link()).request("peek", {"of": key}, load=False)
        return str(reply.fields["state"]), str(reply.fields["text"])

    def _noted(self) -> dict[str, str]:
        """The key by which a request is looked at from now on, as its field."""
        key = uuid.uuid4().hex
        noted = under_way.get()
        if noted is not None:
            noted.append(partial(self._look, key))
        return {"key": key}

    async def act(self, kind: str, args: Mapping[str, Any], timeout: float | None = None) -> Any:
        """The wire form of an Action's Observation; the hard time limit is in seconds."""
        self._touch()
        action: dict[str, Any] = {"action": kind, "args": dict(args)}
        if timeout is not None:
            action["timeout"] = timeout
        body = json.dumps({"action": action}).encode()
        # An agent's other tools take paths relative to the shell's directory, too.
        fields = {**self._noted(), "relative_paths": True}
        reply = await self.request("execute_action", fields, body)
        return json.loads(reply.body or b"{}")

    async def run_cell(
        self,
        args: Mapping[str, Any],
        timeout: float | None = None,
        *,
        store_history: bool = False,
    ) -> Any:
        """Run a cell and return its Observation's wire form, notebook outputs and execution count.

        It is interrupted after ``timeout`` seconds. With ``store_history`` the kernel numbers it
        like a person's cell.
        """
        self._touch()
        action: dict[str, Any] = {"action": "run_ipython", "args": dict(args)}
        if timeout is not None:
            action["timeout"] = timeout
        body = json.dumps({"action": action}).encode()
        fields = {**self._noted(), "store_history": store_history}
        reply = await self.request("run_cell", fields, body)
        return json.loads(reply.body or b"{}")


class KernelTools:
    """The tools that live in the kernel: those of MCP servers behind it, and skills if wanted.

    A skill called ``file_editor`` would end the conversation of an agent that has a tool of that
    name itself, so that skills are listed for who asks, with a prefix.
    """

    def __init__(self, kernel: Kernel, taken: Iterable[str] = ()) -> None:
        """Prepare; a tool that has a name that is taken gets its server's name as a prefix."""
        self._kernel = kernel
        self._taken = list(taken)

    async def tools(self, start: bool) -> list[Tool]:
        """The tools as they describe themselves; none without the kernel, unless it is started.

        Without ``start`` nothing is loaded into the kernel, either.
        """
        if not (start or self._kernel.is_there):
            self._kernel.list_without()
            return []
        fields = {"taken": self._taken, "skills": skills_shown.get()}
        try:
            reply = await self._kernel.request("tools", fields, load=start)
        except ExtensionMissingError:
            if start:
                raise
            self._kernel.list_without()
            return []
        skills = set(reply.fields.get("skills", ()))
        return [
            self._skill(wire) if wire["name"] in skills else self._tool(wire)
            for wire in json.loads(reply.body or b"[]")
        ]

    def _skill(self, wire: dict[str, Any]) -> Tool:
        return self._tool(wire, prefix=SKILL_PREFIX, rest=Tool.rest)

    def _tool(self, wire: dict[str, Any], prefix: str = "", rest: str = "") -> Tool:
        name = str(wire["name"])

        async def call(arguments: dict[str, Any], caller: Caller) -> Result:
            args = {"name": name, "arguments": arguments}
            found = of_observation(await self._kernel.act("call_tool_mcp", args))
            # Structure that was not announced would only hide the text from agents.
            return found if "outputSchema" in wire else text_alone(found)

        # What the arguments have to be is checked where the tool is, and how long an answer
        # of somebody else's may be is their own affair.
        described = str(wire.get("description") or "")
        return Tool(f"{prefix}{name}", described, {}, call, rest=rest, wire=wire)


def state_tools(kernel: Kernel) -> list[Tool]:
    """Tools that look at the runtime."""

    async def status(arguments: dict[str, Any], caller: Caller) -> Result:
        reply = await kernel.request("status")
        found = reply.fields["runtime"]
        return result(text(json.dumps(found, indent=2)))

    async def events(arguments: dict[str, Any], caller: Caller) -> Result:
        limit = arguments.get("limit", DEFAULT_EVENT_COUNT)
        start = arguments.get("start_id")
        if start is None:
            reply = await kernel.request("status")
            start = max(0, int(reply.fields["runtime"]["events"]) - limit)
        reply = await kernel.request("events", {"start_id": start, "limit": limit})
        found = json.loads(reply.body or b"[]")
        lines = [_line(event) for event in found] or ["Nothing has happened yet."]
        return result(text("\n".join(lines)))

    return [
        Tool(
            "status",
            "How the runtime in the kernel does: working directory, commands and cells that are "
            "running now, plugins, memory, number of events so far.",
            schema(),
            status,
            {"readOnlyHint": True},
        ),
        Tool(
            "events",
            "What has happened in the runtime, by whomever: the person's and the agents' actions "
            "and what came of them, oldest first. Without start_id the most recent ones.",
            schema(
                start_id={"type": "integer", "minimum": 0, "description": "Id of the first event."},
                limit={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 500,
                    "default": DEFAULT_EVENT_COUNT,
                    "description": "How many at most.",
                },
            ),
            events,
            {"readOnlyHint": True},
            "Ask for fewer at a time by start_id and limit.",
        ),
    ]


def _line(event: Mapping[str, Any]) -> str:
    kind = event.get("action") or event.get("observation")
    what = "->" if "observation" in event else ""
    told = str(event.get("content") or event.get("message") or "").strip()
    return f"[{event.get('id')}] {event.get('source')} {what}{kind}: {told[:500]}"
