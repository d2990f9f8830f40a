"""The MCP sessions of one address, and what becomes of the calls that come in by them.

This module imports the SDK, which takes half a second: import it in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from oh_jupyter._version import __version__
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ToolCall
from oh_jupyter.mcp_sdk.server import ToolServer
from oh_jupyter.server.mcp.asgi import Asgi, Exchange
from oh_jupyter.server.mcp.kernel import Kernel, under_way
from oh_jupyter.server.mcp.results import Result
from oh_jupyter.server.mcp.toolbox import Caller, Toolbox

__all__ = ["McpEndpoint"]

CALLER = "oh_jupyter.caller"
EXCHANGE = "oh_jupyter.exchange"
"""Entries of an ASGI scope by which a tool call finds who called, and whether they are there."""

PROGRESS_INTERVAL_SECONDS = 1.0
"""Seconds between two signs of life of a call."""

CLOSE_TIMEOUT_SECONDS = 2.0
"""Seconds that sessions get to end by themselves."""

MAX_BODY_BYTES = 64 * 1024**2
"""Bytes that a message may have; a file to write is one."""

MESSAGES_PATH = "/mcp/messages/"

INSTRUCTIONS = (
    "These tools work in a running Jupyter kernel that you share with a person, who sees what you "
    "do: the cells that you run with run_ipython use the person's variables, the shell of run "
    "keeps its state, edits can be undone. The notebook tools read and change the person's open "
    "notebooks."
)


class McpEndpoint:
    """The sessions of one address, which all see the same tools."""

    def __init__(self, toolbox: Toolbox, root_path: str) -> None:
        """Make an endpoint below the path that clients see; ``start`` opens it."""
        self._toolbox = toolbox
        self._root_path = root_path
        self._server = ToolServer(
            self,
            name="oh_jupyter",
            version=__version__,
            instructions=INSTRUCTIONS,
            messages_path=MESSAGES_PATH,
            max_body_bytes=MAX_BODY_BYTES,
        )
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._exchanges: dict[asyncio.Task[None], Exchange] = {}

    async def start(self) -> None:
        """Open for sessions."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                async with self._server.running():
                    started.set_result(None)
                    await self._stop.wait()
            except Exception as problem:
                if started.done():
                    raise
                started.set_exception(problem)

        self._running = asyncio.create_task(run())
        await started

    @property
    def listeners(self) -> int:
        """How many sessions want to hear of other tools."""
        return self._server.listeners

    async def close(self) -> None:
        """End all sessions; what their calls have under way is cancelled."""
        self._toolbox.close()
        tasks = list(self._exchanges)
        # As if all clients had left: so the SDK ends its sessions in good order.
        for exchange in list(self._exchanges.values()):
            exchange.gone.set()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_SECONDS)
        for task in tasks:
            task.cancel()
        self._stop.set()
        waiting = [*tasks, *([self._running] if self._running else [])]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def http(self, exchange: Exchange, caller: Caller) -> None:
        """Answer a request to ``/mcp``: streamable HTTP."""
        await self._serve(exchange, caller, self._server.http)

    async def messages(self, exchange: Exchange, caller: Caller) -> None:
        """Take a message for a session of the SSE transport."""
        await self._serve(exchange, caller, self._server.messages)

    async def sse(self, exchange: Exchange, caller: Caller) -> None:
        """Hold a session of the SSE transport, for as long as the client stays."""
        await self._serve(exchange, caller, self._server.sse)

    async def _serve(self, exchange: Exchange, caller: Caller, application: Asgi) -> None:
        exchange.scope.update({"root_path": self._root_path, CALLER: caller, EXCHANGE: exchange})
        task = asyncio.create_task(exchange.run(application))
        self._exchanges[task] = exchange
        try:
            await task
        except asyncio.CancelledError:
            # The server stops; a handler that is cancelled itself takes its work along.
            task.cancel()
        finally:
            self._exchanges.pop(task, None)

    async def tools_changed(self) -> None:
        """Tell every session that the tools are others now."""
        await self._server.announce_change()

    async def list_tools(self) -> list[dict[str, Any]]:
        """List the tools, see ``OfferedTools``."""
        return [tool.to_wire() for tool in await self._toolbox.tools()]

    async def call_tool(self, call: ToolCall) -> Result:
        """Carry a call out, see ``OfferedTools``."""
        caller: Caller = call.scope[CALLER]
        work = partial(self._toolbox.call, call.name, call.arguments, caller)
        noted: list[tuple[Kernel, str]] = []
        under_way.set(noted)
        report = call.report_progress
        telling = None if report is None else partial(_tell_progress, report, noted)
        return await _while_there(call.scope[EXCHANGE], work, telling)


async def _tell_progress(
    report: Callable[[float, str], Awaitable[None]], noted: list[tuple[Kernel, str]]
) -> None:
    """Tell the last lines of what is put out, or for how long it has been silent."""
    started = time.monotonic()
    while True:
        seconds, lines = time.monotonic() - started, ""
        if noted:
            kernel, kind = noted[-1]
            with suppress(OhJupyterError):
                lines = await kernel.peek(kind)
        await report(seconds, lines or f"running for {seconds:.0f} s")
        await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)


async def _while_there(
    exchange: Exchange,
    work: Callable[[], Awaitable[Result]],
    telling: Callable[[], Coroutine[Any, Any, None]] | None,
) -> Result:
    """Carry a call out with signs of life; a client that goes away cancels it."""
    found: list[Result] = []
    async with anyio.create_task_group() as group:

        async def gone() -> None:
            await exchange.gone.wait()
            group.cancel_scope.cancel()

        if telling is not None:
            group.start_soon(telling)
        group.start_soon(gone)
        found.append(await work())
        group.cancel_scope.cancel()
    return found[0] if found else {"content": [], "isError": True}
