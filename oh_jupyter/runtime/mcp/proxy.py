"""All MCP servers behind the runtime, and the names of their tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import McpError
from oh_jupyter.runtime.mcp.connection import InThread, McpConnection, McpServer
from oh_jupyter.runtime.tools import Tool

SYNC_TIMEOUT_SECONDS = 15.0
"""Maximum wait of a client for slow servers."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class McpTool(Tool):
    """A tool of an MCP server, under one of its names."""


class McpProxy:
    """The configured servers, started on demand."""

    def __init__(
        self,
        in_thread: InThread,
        cwd: str,
        configured: Sequence[McpServer] = (),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet: configured servers start when tools are first requested.

        ``changed`` is called on the runtime thread when the tools change.
        """
        self._configured = configured
        self._in_thread = in_thread
        self._cwd = cwd
        self._changed = changed
        self._connections: dict[str, McpConnection] = {}
        self._syncing = asyncio.Lock()

    def unknown(self, servers: Sequence[McpServer]) -> list[McpServer]:
        """Return those of these servers that are not configured, and do not run already."""
        known = [*self._configured, *(each.server for each in self._connections.values())]
        return [server for server in servers if server not in known]

    async def sync(self, servers: Sequence[McpServer]) -> str:
        """Run exactly these servers; return a line for each that does not start, or ""."""
        async with self._syncing:
            return await self._sync(servers)

    async def _sync(self, servers: Sequence[McpServer]) -> str:
        before = self.listed()
        wanted = {server.name: server for server in servers}
        for name, connection in list(self._connections.items()):
            if wanted.get(name) != connection.server:
                del self._connections[name]
                await connection.close()
        # In the requested order, whichever already ran.
        self._connections = {
            name: self._connections.get(name)
            or McpConnection(server, self._cwd, self._in_thread, self._changed)
            for name, server in wanted.items()
        }
        if self.listed() != before:
            self._changed()
        problems = await self._start_all()
        for problem in problems:
            logger.warning("%s", problem)
        self._configured = ()
        return "\n".join(problems)

    async def _start_all(self) -> list[str]:
        """Start all servers; return the errors, including late ones."""
        starting = {
            asyncio.create_task(self._start(connection)): name
            for name, connection in self._connections.items()
        }
        if not starting:
            return []
        done, late = await asyncio.wait(starting, timeout=SYNC_TIMEOUT_SECONDS)
        problems = [str(task.exception()) for task in done if task.exception()]
        for task in late:
            run_in_background(self._report_start(task))
            problems.append(
                f"MCP server {starting[task]!r} has not answered within "
                f"{SYNC_TIMEOUT_SECONDS:.0f} s. Its tools will appear when it has started"
            )
        return problems

    async def _start(self, connection: McpConnection) -> None:
        """Start a server, and announce its tools while others are still starting."""
        before = self.listed()
        await connection.start()
        if self.listed() != before:
            self._changed()

    async def _report_start(self, starting: asyncio.Task[None]) -> None:
        try:
            await starting
        except McpError as error:
            logger.warning("%s", error)

    async def begin(self) -> None:
        """Start the configured servers, once."""
        if not self._configured:
            return
        async with self._syncing:
            if self._configured:
                await self._sync(self._configured)

    def listed(self, taken: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return the tools of all servers as MCP lists them, avoiding taken names.

        A single server's tools keep their names. With several servers, or if a name is taken, the
        server's name is put in front, as in OpenHands' protocol.
        """
        several = len(self._connections) > 1
        used = set(taken)
        tools = []
        for connection, tool in self._each():
            name = str(tool["name"])
            if several or name in used:
                name = f"{connection.server.name}_{name}"
            if name in used:
                logger.warning("Two MCP tools are named %s; skipped one", name)
                continue
            used.add(name)
            tools.append({**tool, "name": name})
        return tools

    def tools(self) -> Iterator[McpTool]:
        """Yield the tools under every name by which they may have been listed.

        That is with the server's name in front, and without it if there is only one server.
        """
        for connection, tool in self._each():
            name = str(tool["name"])
            details = str(tool.get("description") or ""), dict(tool.get("inputSchema") or {})
            call = partial(_call, connection, name)
            yield McpTool(f"{connection.server.name}_{name}", *details, call)
            if len(self._connections) == 1:
                yield McpTool(name, *details, call)

    def _each(self) -> Iterator[tuple[McpConnection, dict[str, Any]]]:
        for connection in list(self._connections.values()):
            for tool in connection.tools:
                yield connection, tool

    async def close(self) -> None:
        """End all servers."""
        async with self._syncing:
            connections, self._connections = self._connections, {}
            await asyncio.gather(*(connection.close() for connection in connections.values()))


async def _call(connection: McpConnection, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; an error becomes its result, as in OpenHands' client."""
    try:
        result = await connection.call(name, arguments)
    except McpError as error:
        return {"isError": True, "error": str(error), "content": []}
    names = ("content", "structuredContent", "isError")
    return {"meta": result.get("_meta"), **{name: result.get(name) for name in names}}
