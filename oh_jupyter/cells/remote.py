"""A kernel behind a Jupyter server or a Kernel Gateway, for a runtime outside of kernels."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import Any

from jupyter_client.session import Session, json_packer

from oh_jupyter.background import run_in_background
from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.queue import CellQueue
from oh_jupyter.cells.request import AGENT_USERNAME, CellRequest, cell_trace, execute_content
from oh_jupyter.errors import PluginError

WATCH_INTERVAL_SECONDS = 2.0
"""Seconds between two checks of the kernel while a cell runs."""


class RemoteKernel:
    """Runs cells through the REST and websocket interface of a server."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        kernel_name: str = "python3",
        kernel_id: str | None = None,
    ) -> None:
        """Choose a running kernel by id, or a kernel to start; nothing is connected yet."""
        self._url = url.rstrip("/")
        self._token = token
        self._name = kernel_name
        self._id = kernel_id
        self._owns_kernel = kernel_id is None
        self._session = Session(username=AGENT_USERNAME)
        self._http: Any = None
        self._socket: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._pending: dict[str, CellRequest] = {}
        self._queue = CellQueue(self._interrupt)
        self._lock = asyncio.Lock()
        self.python_interpreter_path = ""

    async def start(self) -> None:
        """Start the kernel unless an id was given, and connect; PluginError on failure."""
        async with self._lock:
            if self._socket is not None and not self._socket.closed:
                return
            import aiohttp

            try:
                await self._connect(aiohttp)
            except (aiohttp.ClientError, OSError) as error:
                await self.close()
                raise PluginError(
                    f"No kernel at {self._url}: {error}. Check kernel_url and kernel_token"
                ) from error
        output = await self._run("import sys; print(sys.executable)", None, silent=False)
        self.python_interpreter_path = output.text.strip()

    async def _connect(self, aiohttp: Any) -> None:
        if self._http is None:
            headers = {"Authorization": f"token {self._token}"} if self._token else {}
            self._http = aiohttp.ClientSession(headers=headers, raise_for_status=True)
        if self._id is None:
            async with self._http.post(self._kernels(), json={"name": self._name}) as response:
                self._id = (await response.json())["id"]
        channels = f"{self._kernels(self._id)}/channels?session_id={self._session.session}"
        self._socket = await self._http.ws_connect(channels, max_msg_size=0)
        self._reader = asyncio.create_task(self._read())

    def _kernels(self, *parts: str) -> str:
        return "/".join((f"{self._url}/api/kernels", *parts))

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Connect if necessary, and run a cell to its end, see ``CellRunner``."""
        await self.start()
        return await self._run(code, timeout, silent)

    async def _run(self, code: str, timeout: float | None, silent: bool) -> CellOutput:
        return await self._queue.run(partial(self._send, code, silent), timeout)

    async def _send(self, code: str, silent: bool) -> CellRequest:
        if self._socket is None:
            raise self._connection_lost()
        content, trace = execute_content(code, silent), dict(cell_trace.get())
        message = self._session.msg("execute_request", content, metadata=trace)
        request = CellRequest(message["header"]["msg_id"], silent)
        self._pending[request.msg_id] = request
        frame = json_packer({**message, "buffers": [], "channel": "shell"}).decode()
        try:
            await self._socket.send_str(frame)
        except OSError as error:
            self._pending.pop(request.msg_id, None)
            raise self._connection_lost() from error
        run_in_background(self._watch(request))
        return request

    async def _interrupt(self) -> None:
        if self._http is not None:
            async with self._http.post(f"{self._kernels(str(self._id))}/interrupt"):
                pass

    async def _watch(self, request: CellRequest) -> None:
        """Poll the kernel while a cell runs, since the server does not report its removal."""
        import aiohttp

        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_INTERVAL_SECONDS):
                    await request.done.wait()
                return
            try:
                async with self._http.get(self._kernels(str(self._id))):
                    pass
            except aiohttp.ClientError:
                request.fail(self._connection_lost())

    def _connection_lost(self) -> PluginError:
        return PluginError(f"The connection to the kernel at {self._url} was lost")

    async def _read(self) -> None:
        """Dispatch messages to their cells until the connection ends."""
        async for frame in self._socket:
            if isinstance(frame.data, str):
                message = json.loads(frame.data)
                request = self._pending.get(message["parent_header"].get("msg_id", ""))
                if request is not None:
                    request.handle(message["header"]["msg_type"], message["content"])
                    if request.done.is_set():
                        self._pending.pop(request.msg_id, None)
        self._fail_pending()

    def _fail_pending(self) -> None:
        for request in self._pending.values():
            request.fail(self._connection_lost())
        self._pending.clear()

    async def close(self) -> None:
        """Disconnect, and shut down the kernel if we started it."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        self._fail_pending()
        http, self._http, self._socket = self._http, None, None
        if http is None:
            return
        if self._owns_kernel and self._id is not None:
            with suppress(Exception):
                async with http.delete(self._kernels(self._id)):
                    self._id = None
        await http.close()
