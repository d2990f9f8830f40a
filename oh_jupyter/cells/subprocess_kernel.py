"""A kernel in a subprocess, for a runtime outside of kernels."""

from __future__ import annotations

import asyncio
import errno
import json
import random
import socket
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.queue import CellQueue
from oh_jupyter.errors import PluginError

if TYPE_CHECKING:
    from oh_jupyter.cells.zmq import KernelClient

_NAME = "python3"
_PORTS = range(40000, 50000)  # as in OpenHands
_CHANNELS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
_MAX_START_ATTEMPTS = 5


class SubprocessKernel:
    """Starts a kernel at its first cell and runs cells in it."""

    def __init__(self) -> None:
        """Create the object; nothing is started yet."""
        self._manager: Any = None
        self._client: KernelClient | None = None
        self._queue = CellQueue(self._interrupt)
        self._lock = asyncio.Lock()
        self._ended: asyncio.Future[int]
        self.python_interpreter_path = sys.executable
        self.startup_cells: list[str] = []  # for a kernel that replaces a dead one

    async def start(self) -> None:
        """Start the kernel unless it is running; PluginError on failure."""
        async with self._lock:
            if self._client is None:
                await self._start()

    async def _start(self) -> None:
        from jupyter_client.manager import AsyncKernelManager

        from oh_jupyter.cells.zmq import KernelClient

        for attempt in range(_MAX_START_ATTEMPTS):
            manager = AsyncKernelManager(kernel_name=_NAME, ip="127.0.0.1", cache_ports=False)
            for channel, port in zip(_CHANNELS, _free_ports(), strict=False):
                setattr(manager, channel, port)
            try:
                await manager.start_kernel()
                self._manager = manager
                provisioner: Any = manager.provisioner
                loop = asyncio.get_running_loop()
                self._ended = loop.run_in_executor(None, provisioner.process.wait)
                self._client = KernelClient(manager.get_connection_info())
                self._queue = CellQueue(self._interrupt)
                output = await self._run("import sys, json; print(json.dumps(sys.executable))")
                self.python_interpreter_path = json.loads(output.text)
                for code in self.startup_cells:
                    await self._run(code, silent=True)
                return
            except PluginError:
                # Another program may have taken a port between the check and its use.
                await self.close()
                if attempt == _MAX_START_ATTEMPTS - 1:
                    raise
            except Exception as error:
                await self.close()
                raise PluginError(f"Kernel {_NAME!r} cannot be started: {error}") from error

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Start the kernel if necessary, and run a cell, see ``CellRunner``."""
        await self.start()
        return await self._run(code, timeout, silent)

    async def _run(
        self, code: str, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Wait for the end of a cell, or of the kernel."""
        assert self._client is not None
        send = partial(self._client.send, code, silent)
        running = asyncio.ensure_future(self._queue.run(send, timeout))
        try:
            waiting: set[asyncio.Future[Any]] = {running, self._ended}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            await self.close()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        raise PluginError("The kernel died; its state is lost, and the next cell starts a new one")

    async def _interrupt(self) -> None:
        if self._manager is not None and self._manager.has_kernel:
            await self._manager.interrupt_kernel()

    async def close(self) -> None:
        """Shut down the kernel; the next cell starts a new one."""
        client, manager = self._client, self._manager
        self._client = self._manager = None
        self._queue.close()
        if client is not None:
            await client.close()
        if manager is not None and manager.has_kernel:
            await manager.shutdown_kernel(now=True)


def _free_ports() -> Iterator[int]:
    """Yield unused ports in random order."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
        yield port
