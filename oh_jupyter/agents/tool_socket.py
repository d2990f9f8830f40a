"""Socket on which an agent reaches the tools of its kernel.

The agent gets a program (``_bridge.py``) as its MCP server, which copies between its pipes and the
socket. Only processes of this agent are served: the address is no secret, and opens nothing to
others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from oh_jupyter._version import __version__
from oh_jupyter.agents.children import InThread
from oh_jupyter.background import run_in_background
from oh_jupyter.mcp_sdk.offered import OfferedTools

if TYPE_CHECKING:
    from oh_jupyter.mcp_sdk.stream_server import StreamServer

BRIDGE = Path(__file__).with_name("_bridge.py")
SDK = "oh_jupyter.mcp_sdk.stream_server"  # takes half a second to import, so in a thread
FOLDER_PREFIX = "oh-tools-"
MAX_ADDRESS_BYTES = 100
"""Systems limit the path of a socket to 104 bytes or more."""

MAX_LINE_BYTES = 64 * 1024**2
"""Largest message, such as a file to write."""

_LOCAL_PEERPID = 2
"""Option of macOS for the process at the other end."""

logger = logging.getLogger(__name__)


class GuestTools(OfferedTools, Protocol):
    """The tools of a guest agent."""

    instructions: str

    async def open(self) -> None:
        """Prepare for calls."""
        ...

    async def close(self) -> None:
        """Stop background work."""
        ...

    def save_documents(self) -> None:
        """Make the person's tabs save their changes; ignore failures."""
        ...

    async def changed(self) -> None:
        """Wait until the list of tools changes."""
        ...


class ToolSocket:
    """Serves the tools of one agent to its processes.

    Attributes:
        agent_pid: Process id of the agent, whose descendants are served; None serves nobody.
        connections: Number of connections so far.
    """

    def __init__(self, tools: GuestTools, in_thread: InThread) -> None:
        self.agent_pid: int | None = None
        self.connections = 0
        self._tools = tools
        self._in_thread = in_thread
        self._folder = ""
        self._address = ""
        self._served: StreamServer
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Begin to listen."""
        await self._tools.open()
        module = await self._in_thread(import_module, SDK)
        self._served = module.StreamServer(
            self._tools,
            name="oh_jupyter",
            version=__version__,
            instructions=self._tools.instructions,
        )
        if sys.platform == "win32":
            self._server = await asyncio.start_server(
                self._accept, "127.0.0.1", 0, limit=MAX_LINE_BYTES
            )
            self._address = str(self._server.sockets[0].getsockname()[1])
        else:
            self._folder = await self._in_thread(_make_folder)
            self._address = str(Path(self._folder, "socket"))
            self._server = await asyncio.start_unix_server(
                self._accept, self._address, limit=MAX_LINE_BYTES
            )
            os.chmod(self._address, 0o600)
        self._start(self._announce_changes())

    @property
    def command(self) -> tuple[str, ...]:
        """Program and arguments that the agent starts as its MCP server."""
        return (sys.executable, "-I", "-S", str(BRIDGE), self._address)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = run_in_background(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not a coroutine function: asyncio would log the end of its task as an error.
        self._start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection = writer.get_extra_info("socket")
            if not await self._in_thread(_is_descendant, connection, self.agent_pid):
                logger.debug("A process that is not of the agent tried to use its tools")
                return
            self.connections += 1
            await self._served.serve(reader, writer)
        finally:
            writer.close()

    async def _announce_changes(self) -> None:
        try:
            while True:
                await self._tools.changed()
                await self._served.announce_change()
        finally:  # also when the runtime closes
            self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def close(self) -> None:
        """End all connections, and stop listening."""
        if not self._address:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        await self._tools.close()
        self._remove_folder()


def _make_folder() -> str:
    """Make a folder for a socket that only this user can open, and remove those of dead kernels."""
    roots = [tempfile.gettempdir(), "/tmp"]
    for root in roots:
        for folder in Path(root).glob(f"{FOLDER_PREFIX}*"):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
    made = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=roots[0])
    if len(os.fsencode(made)) + len("/socket") > MAX_ADDRESS_BYTES:
        os.rmdir(made)
        made = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=roots[1])
    return made


def _is_abandoned(folder: Path) -> bool:
    """Return whether nobody listens any more on the socket of a folder of this user."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        if folder.stat().st_uid != os.getuid():
            return False
        try:
            probe.connect(str(folder / "socket"))
        except ConnectionRefusedError:
            return True
    return False


def _is_descendant(connection: Any, ancestor: int | None) -> bool:
    """Return whether the process at the other end is of this user and a descendant."""
    import psutil

    if ancestor is None:
        return False
    try:
        process = psutil.Process(_peer_pid(connection))
        if sys.platform != "win32" and process.uids().real != os.getuid():
            return False
        return ancestor in (process.pid, *(parent.pid for parent in process.parents()))
    except (psutil.Error, OSError, LookupError, ValueError):
        return False


def _peer_pid(connection: Any) -> int:
    """Return the id of the process at the other end; raise LookupError if it is unknown."""
    if connection.family != getattr(socket, "AF_UNIX", None):
        import psutil

        ends = (connection.getpeername(), connection.getsockname())
        for each in psutil.net_connections("tcp4"):
            if each.pid and (tuple(each.laddr), tuple(each.raddr)) == ends:
                return int(each.pid)
        raise LookupError("The connection is closed")
    if sys.platform == "darwin":
        option = connection.getsockopt(0, _LOCAL_PEERPID, struct.calcsize("i"))
        return int(struct.unpack("i", option)[0])
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    return int(struct.unpack("3i", credentials)[0])
