"""All MCP servers behind the runtime, and the names under which their tools are called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.errors import McpError
from oh_jupyter.runtime.mcp.connection import Connection, InThread
from oh_jupyter.runtime.mcp.servers import McpServer
from oh_jupyter.runtime.tools import Tool

SYNC_TIMEOUT_SECONDS = 15.0
"""How long a client is kept waiting for servers that do not answer."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class McpTool(Tool):
    """A tool of an MCP server, by one of the names that it may be called by."""


class McpProxy:
    """The servers that are to run, some of which do."""

    def __init__(
        self,
        in_thread: InThread,
        cwd: str,
        configured: Sequence[McpServer] = (),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet: the configured servers start when tools are first asked for.

        ``changed`` is called on the runtime thread when there are other tools than before.
        """
        self._configured = configured
        self._in_thread = in_thread
        self._cwd = cwd
        self._changed = changed
        self._connections: dict[str, Connection] = {}
        self._syncing = asyncio.Lock()

    async def sync(self, servers: Sequence[McpServer]) -> str:
        """Have those servers run that are given, and no others.

        Returns which do not start and why, a line each; "" if all do.
        """
        async with self._syncing:
            return await self._sync(servers)

    async def _sync(self, servers: Sequence[McpServer]) -> str:
        before = self.listed()
        wanted = {server.name: server for server in servers}
        for name, connection in list(self._connections.items()):
            if wanted.get(name) != connection.server:
                del self._connections[name]
                await connection.close()
        # In the order given, whichever of them there were before.
        self._connections = {
            name: self._connections.get(name)
            or Connection(server, self._cwd, self._in_thread, self._changed)
            for name, server in wanted.items()
        }
        problems = await self._start_all()
        for problem in problems:
            logger.warning("%s", problem)
        self._configured = ()
        if self.listed() != before:
            self._changed()
        return "\n".join(problems)

    async def _start_all(self) -> list[str]:
        """Start what does not run; what is wrong with those that do not answer soon."""
        starting = {
            asyncio.create_task(connection.start()): name
            for name, connection in self._connections.items()
        }
        if not starting:
            return []
        done, late = await asyncio.wait(starting, timeout=SYNC_TIMEOUT_SECONDS)
        problems = [str(task.exception()) for task in done if task.exception()]
        for task in late:
            run_in_background(self._tell_when_started(task))
            problems.append(
                f"MCP server {starting[task]!r} has not answered within "
                f"{SYNC_TIMEOUT_SECONDS:.0f} s. It goes on starting; its tools come when it has"
            )
        return problems

    async def _tell_when_started(self, starting: asyncio.Task[None]) -> None:
        try:
            await starting
        except McpError as problem:
            logger.warning("%s", problem)
        else:
            self._changed()

    async def begin(self) -> None:
        """Start the servers of the settings, once."""
        if not self._configured:
            return
        async with self._syncing:
            if self._configured:
                await self._sync(self._configured)

    def listed(self, taken: Collection[str] = ()) -> list[dict[str, Any]]:
        """The tools of all servers as MCP lists them, none by a name that is taken.

        With one server they have their own names; with several, and where a name is taken,
        that of the server comes first, as in OpenHands' protocol.
        """
        several = len(self._connections) > 1
        used = set(taken)
        found = []
        for connection, tool in self._each():
            name = str(tool["name"])
            if several or name in used:
                name = f"{connection.server.name}_{name}"
            if name in used:
                logger.warning("Two MCP tools would be called %s; one is left out", name)
                continue
            used.add(name)
            found.append({**tool, "name": name})
        return found

    def tools(self) -> Iterator[McpTool]:
        """The tools by every name under which they may have been listed.

        With the server's name in front, and, if there is but one server, without.
        """
        for connection, tool in self._each():
            name = str(tool["name"])
            described = str(tool.get("description") or ""), dict(tool.get("inputSchema") or {})
            call = partial(_call, connection, name)
            yield McpTool(f"{connection.server.name}_{name}", *described, call)
            if len(self._connections) == 1:
                yield McpTool(name, *described, call)

    def _each(self) -> Iterator[tuple[Connection, dict[str, Any]]]:
        for connection in list(self._connections.values()):
            for tool in connection.tools:
                yield connection, tool

    async def close(self) -> None:
        """End all servers."""
        async with self._syncing:
            connections, self._connections = self._connections, {}
            await asyncio.gather(*(connection.close() for connection in connections.values()))


async def _call(connection: Connection, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what keeps it from answering is an answer, too, as in OpenHands' client."""
    try:
        found = await connection.call(name, arguments)
    except McpError as problem:
        return {"isError": True, "error": str(problem), "content": []}
    names = ("content", "structuredContent", "isError")
    return {"meta": found.get("_meta"), **{name: found.get(name) for name in names}}
