"""The tools of one guest, called in this process or passed on to the kernel's server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from oh_jupyter.background import run_in_background, wait_while
from oh_jupyter.errors import RequestNotFoundError
from oh_jupyter.events.actor import Actor, current_actor
from oh_jupyter.kernel.control.handler import short_switch_interval
from oh_jupyter.kernel.guest_tools.files import OwnNotebooks
from oh_jupyter.kernel.guest_tools.own_kernel import OwnKernel
from oh_jupyter.kernel.guest_tools.server_tools import ServerTools
from oh_jupyter.kernel.own_server import OwnServer
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.mcp_tools.kernel import CallActions, current_actions
from oh_jupyter.mcp_tools.progress import report_progress
from oh_jupyter.mcp_tools.results import Result, result, text
from oh_jupyter.mcp_tools.seen_lines import SeenLines
from oh_jupyter.mcp_tools.tool_list import all_tools
from oh_jupyter.mcp_tools.toolbox import INSTRUCTIONS, Caller, McpTool, Toolbox, schema
from oh_jupyter.mcp_tools.tools_in_kernel import ToolsInKernel
from oh_jupyter.operations.actions import ExecuteAction
from oh_jupyter.runtime.components import MIN_SECRET_CHARS

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh

MAX_CLIENT_CHARS = 100  # of a client's name
WATCH_SECONDS = 3600.0

OF_THE_SERVER = frozenset(
    {
        *("list_notebooks", "read_cells", "insert_cell", "edit_cell", "run_cell"),
        *("delete_cell", "move_cell", "kernel"),
    }
)
"""Tools on notebooks and kernels, which people see in the tabs of a server that has them."""

EXECUTE_ACTION = "execute_action"
ON_FILES = frozenset({"run", "run_ipython", "read", "write", "edit", "store", EXECUTE_ACTION})
"""Tools that see files as the tabs have saved them."""

_client: ContextVar[str] = ContextVar("_client", default="")
"""Name of the client of the current call."""


class Guest:
    """Caller of the tools: an agent that a person has started in this kernel."""

    scopes: tuple[str, ...] | None = None
    only_notebook = ""

    def __init__(self, name: str) -> None:
        self.principal = name
        self.actor = Actor(guest=name)

    async def allowed(self, action: str, resource: str) -> bool:
        """Allow everything: the confirmation policy asks the person."""
        return True


class GuestToolbox:
    """The tools of one guest, see ``oh_jupyter.agents.tool_socket.GuestTools``."""

    instructions = INSTRUCTIONS

    def __init__(
        self,
        oh: Oh,
        guest: str,
        kernel_id: str,
        variables: dict[str, Any],
        find_server: Callable[[], OwnServer | None],
    ) -> None:
        """Make the tools for a conversation.

        Args:
            oh: The runtime.
            guest: Name of the conversation.
            kernel_id: This kernel's id.
            variables: Variables of the notebook.
            find_server: Returns the server that has this kernel, or None; it may block.
        """
        self._executor = oh.host.runtime.executor
        self._caller = Guest(guest)
        self._find_server = find_server
        self._seen = SeenLines()
        self._server: OwnServer | None = None
        self._server_tools: ServerTools | None = None
        kernel = OwnKernel(kernel_id, oh)
        notebooks = OwnNotebooks(
            kernel_id,
            self._executor.workspace_dir,
            variables,
            lambda: oh.host.running_cell is not None,
        )
        fixed = [self._placed(tool) for tool in all_tools(notebooks, kernel)]
        fixed.append(self._placed(_action_tool(kernel)))
        source = ToolsInKernel(kernel, [tool.name for tool in fixed])
        self._toolbox = Toolbox(fixed, source, _nothing_around, "kernel")

    async def open(self) -> None:
        """Find the server that has this kernel."""
        await self.close()
        self._server = await self._executor.in_thread(self._find_server)
        if self._server is not None:
            if len(self._server.token) >= MIN_SECRET_CHARS:
                self._executor.events.mask([self._server.token])
            self._server_tools = ServerTools(self._server, self._caller.principal)

    def _placed(self, tool: McpTool) -> McpTool:
        """Return a tool that the server executes, or that sees what the tabs show, if need be."""
        if tool.name in OF_THE_SERVER:
            return replace(tool, call=self._passed_on(tool))
        return replace(tool, call=self._beside_tabs(tool)) if tool.name in ON_FILES else tool

    def _passed_on(self, tool: McpTool) -> Callable[[dict[str, Any], Caller], Awaitable[Result]]:
        async def call(arguments: dict[str, Any], caller: Caller) -> Result:
            if self._server_tools is not None:
                try:
                    return await self._server_tools.call(tool.name, arguments, _client.get())
                except httpx.ConnectError:  # the server has ended
                    await self.open()
            return await tool.call(arguments, caller)

        return call

    def _beside_tabs(self, tool: McpTool) -> Callable[[dict[str, Any], Caller], Awaitable[Result]]:
        async def call(arguments: dict[str, Any], caller: Caller) -> Result:
            server = self._server
            if server is None:
                return await tool.call(arguments, caller)
            await self._executor.in_thread(server.save_tabs)
            try:
                return await tool.call(arguments, caller)
            finally:
                run_in_background(self._executor.in_thread(server.check_tabs))

        return call

    def save_documents(self) -> None:
        """Make the person's tabs save their changes; ignore failures."""
        if self._server is not None:
            self._server.save_tabs()

    async def changed(self) -> None:
        """Wait until the list of tools changes."""
        tools = self._executor.tools
        known = tools.version
        while tools.version == known:
            await wait_while(tools.on_change, lambda: tools.version == known, WATCH_SECONDS)

    async def list_tools(self, *, has_apps: bool = False) -> list[dict[str, Any]]:
        """List the tools, see ``OfferedTools``."""
        return [tool.to_wire() for tool in await self._toolbox.tools()]

    async def call_tool(self, call: ToolRequest) -> Result:
        """Execute a call, see ``OfferedTools``."""
        client = call.client[:MAX_CLIENT_CHARS]
        actions = CallActions()
        current_actions.set(actions)
        current_actor.set(replace(self._caller.actor, client=client, **call.trace))
        _client.set(client)
        short_switch_interval.acquire()
        try:
            async with anyio.create_task_group() as group:
                if call.report_progress is not None:
                    group.start_soon(report_progress, call, call.report_progress, actions)
                outcome = await self._toolbox.call(call.name, call.arguments, self._caller)
                group.cancel_scope.cancel()
            return outcome if call.name == EXECUTE_ACTION else self._seen.without(outcome)
        finally:
            short_switch_interval.release()

    async def start_task(self, call: ToolRequest, delay_seconds: float) -> Result:
        """Execute a call: a guest has no tasks that outlive it."""
        return await self.call_tool(call)

    async def task(self, scope: Mapping[str, Any], id: str, **look: Any) -> dict[str, Any]:
        """Raise RequestNotFoundError: there are no tasks."""
        raise RequestNotFoundError(f"There is no task {id!r}")

    async def close(self) -> None:
        """Disconnect from the server."""
        if self._server_tools is not None:
            await self._server_tools.close()
        self._server = self._server_tools = None


def _action_tool(kernel: OwnKernel) -> McpTool:
    """Return the unlisted tool of ``oh_jupyter.openhands``, whose tools make Actions themselves."""

    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        body = json.dumps({"action": arguments["action"]}).encode()
        reply = await kernel.send(ExecuteAction(), body, cancellable=True)
        return result(text((reply.body or b"{}").decode()))

    arguments = schema("action", action={"type": "object"})
    return McpTool(EXECUTE_ACTION, "Execute an Action.", arguments, call, rest="", listed=False)


@asynccontextmanager
async def _nothing_around(tool: str) -> AsyncIterator[None]:
    yield
