"""One MCP server behind the runtime: its configuration, its process, and its session.

The configuration has the format of OpenHands' configuration and protocol.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_jupyter._version import __version__
from oh_jupyter.errors import McpError, OhJupyterError, WireError
from oh_jupyter.process import PIPE, Child, spawn

if TYPE_CHECKING:
    from oh_jupyter.mcp_sdk.client import Session


_NAME = re.compile(r"[A-Za-z0-9_-]+")
_KEYS = ("name", "command", "args", "env")


@dataclass(frozen=True)
class McpServer:
    """A program that speaks MCP on its standard input and output.

    Attributes:
        name: Its name.
        command: The program.
        args: Its arguments.
        env: Additional environment variables. Secret: never logged.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def command_line(self) -> str:
        """The command line with the names of its variables, as a person reads it."""
        line = shlex.join([self.command, *self.args])
        return f"{line} (with the variables {', '.join(self.env)})" if self.env else line


def parse_servers(data: Any) -> list[McpServer]:
    """Parse a list of servers from JSON or TOML data; raise WireError if it is invalid."""
    if not isinstance(data, list | tuple):
        raise WireError("Request must be a list of MCP tools to sync", "mcp_servers")
    servers = [_server(entry, f"[{index}]") for index, entry in enumerate(data)]
    names = [server.name for server in servers]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise WireError(f"Two MCP servers are named {name!r}", f"[{index}].name")
    return servers


def _server(entry: Any, where: str) -> McpServer:
    if not isinstance(entry, dict):
        raise WireError(f"MCP server {where} must be an object with {', '.join(_KEYS)}", where)
    for key in entry:
        if key not in _KEYS:
            raise WireError(
                f"MCP server {where} has an unknown key {key!r}; known: {', '.join(_KEYS)}",
                f"{where}.{key}",
            )
    name, command = entry.get("name"), entry.get("command")
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        raise WireError(
            f"MCP server {where}: name must be letters, digits, '_' and '-', not {name!r}",
            f"{where}.name",
        )
    if not isinstance(command, str) or len(command.split()) != 1:
        raise WireError(
            f"MCP server {name}: command must be one word, not {command!r}; use args",
            f"{where}.command",
        )
    return McpServer(
        name.strip(),
        command.strip(),
        _args(entry.get("args"), name, f"{where}.args"),
        _env(entry.get("env"), name, f"{where}.env"),
    )


def _args(value: Any, name: str, where: str) -> tuple[str, ...]:
    """Return arguments from a list, or from one string with shell quoting."""
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise WireError(f"MCP server {name}: args cannot be split: {error}", where) from None
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise WireError(f"MCP server {name}: args must be a list of strings", where)
    return tuple(value)


def _env(value: Any, name: str, where: str) -> dict[str, str]:
    """Return variables from an object or ``K=V,K2=V2``. Errors omit values, which may be secret."""
    if value is None:
        return {}
    if isinstance(value, str):
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        if not all(equals and key.strip() for key, equals, _ in pairs):
            raise WireError(
                f"MCP server {name}: env must be KEY=VALUE pairs separated by commas", where
            )
        return {key.strip(): text.strip() for key, _, text in pairs}
    if not isinstance(value, dict) or not all(
        isinstance(key, str) and isinstance(text, str) for key, text in value.items()
    ):
        raise WireError(f"MCP server {name}: env must be an object of strings", where)
    return dict(value)


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
