"""One MCP server behind the runtime: its process, and its session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from oh_jupyter._version import __version__
from oh_jupyter.errors import McpError, OhJupyterError
from oh_jupyter.process import PIPE, Child, spawn
from oh_jupyter.runtime.mcp.servers import McpServer

if TYPE_CHECKING:
    from oh_jupyter.mcp_sdk.client import Session

START_TIMEOUT_SECONDS = 50.0
"""Long enough for a package download."""

END_GRACE_SECONDS = 2.0

InThread = Callable[..., Awaitable[Any]]

logger = logging.getLogger(__name__)


class McpConnection:
    """A server that runs or can be restarted, with its ``tools``."""

    def __init__(
        self, server: McpServer, cwd: str, in_thread: InThread, changed: Callable[[], None]
    ) -> None:
        """Prepare; ``changed`` is called when the server's tools change."""
        self.server = server
        self.tools: list[dict[str, Any]] = []
        self._cwd = cwd
        self._in_thread = in_thread
        self._changed = changed
        self._session: Session | None = None
        self._errors: deque[str] = deque(maxlen=20)
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Event | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the server unless it runs, and list its tools; raise McpError on failure."""
        async with self._starting:
            if self._ended is not None and self._ended.is_set() and self._task is not None:
                # Its calls fail a moment before its session ends.
                await asyncio.gather(self._task, return_exceptions=True)
            if self._session is not None:
                return
            self._closing.clear()
            self._errors.clear()
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(ready))
            try:
                async with asyncio.timeout(START_TIMEOUT_SECONDS):
                    await asyncio.shield(ready)
            except TimeoutError:
                await self.close()
                raise McpError(
                    f"MCP server {self.server.name!r} did not answer within "
                    f"{START_TIMEOUT_SECONDS:.0f} s.{self._last_words()}"
                ) from None

    async def _run(self, ready: asyncio.Future[None]) -> None:
        """Run the server's session in one task, as the SDK's scopes require."""
        try:
            await self._live(ready)
        except Exception as error:
            reason = _reason(error)
            if ready.done():
                logger.warning("MCP server %s: %s", self.server.name, reason)
            else:
                ready.set_exception(
                    McpError(
                        f"MCP server {self.server.name!r} cannot be used: {reason}"
                        f"{self._last_words()}"
                    )
                )
        finally:
            self._session = None
            if not ready.done():
                ready.set_exception(
                    McpError(
                        f"MCP server {self.server.name!r} ended before it answered."
                        f"{self._last_words()}"
                    )
                )
            ready.exception()  # there may be no waiter left

    async def _live(self, ready: asyncio.Future[None]) -> None:
        import anyio

        from oh_jupyter.mcp_sdk.client import Session
        from oh_jupyter.runtime.mcp.transport import pipes, read_lines

        child: Child = await self._in_thread(self._spawn)
        try:
            async with (
                anyio.create_task_group() as group,
                pipes(child, self._in_thread) as (reading, writing, ended),
            ):
                self._ended = ended
                group.start_soon(read_lines, child.stderr, self._errors)
                group.start_soon(self._until_closed, ended, group.cancel_scope)
                session = Session(
                    reading,
                    writing,
                    name="oh_jupyter",
                    version=__version__,
                    tools_changed=self._list_again,
                )
                async with session:
                    self.tools = await session.tools()
                    self._session = session
                    ready.set_result(None)
                    await ended.wait()
        finally:
            self._session = None
            await self._end(child)

    async def _end(self, child: Child) -> None:
        try:
            await asyncio.shield(self._in_thread(_end, child))
        except RuntimeError:  # at interpreter exit, pools accept no work
            _end(child)

    def _spawn(self) -> Child:
        from oh_jupyter.mcp_sdk.client import default_environment

        server = self.server
        return spawn(
            [server.command, *server.args],
            cwd=self._cwd,
            env=default_environment() | server.env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def _until_closed(self, ended: asyncio.Event, scope: Any) -> None:
        """End the session when the server ends or ``close`` is called."""
        waits = [asyncio.ensure_future(e.wait()) for e in (ended, self._closing)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        scope.cancel()

    async def _list_again(self) -> None:
        if self._session is not None:
            self.tools = await self._session.tools()
            self._changed()

    def _last_words(self) -> str:
        return f" It said: {' | '.join(self._errors)[-2000:]}" if self._errors else ""

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool as on the wire; an McpError if the server refused or has ended."""
        await self.start()
        session = self._session
        if session is None:
            raise McpError(f"MCP server {self.server.name!r} has ended.{self._last_words()}")
        try:
            return await session.call(tool, arguments)
        except Exception as error:
            raise McpError(
                f"MCP server {self.server.name!r}, tool {tool!r}: {_reason(error)}"
            ) from error

    async def close(self) -> None:
        """End the server."""
        self._closing.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None


def _end(child: Child) -> None:
    child.terminate(END_GRACE_SECONDS)
    if child.stdin is not None:
        with suppress(OSError):
            child.stdin.close()


def _reason(error: BaseException) -> str:
    """Return the message of an error, unwrapped from exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OhJupyterError):
        return str(error)
    return str(error) or type(error).__name__
