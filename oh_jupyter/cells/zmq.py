"""A client that runs cells in a kernel, its own or another, like a frontend.

Outputs may arrive after the reply: a cell is done after reply *and* idle status.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from hmac import compare_digest
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.connect import ConnectionFileMixin
from jupyter_client.session import Session

from oh_jupyter.cells import CellOutput
from oh_jupyter.cells.outputs import OutputCollector
from oh_jupyter.cells.request import (
    AGENT_USERNAME,
    MAX_OUTPUT_BYTES,
    NEVER_BEGAN,
    CellRequest,
    begin_within,
    cell_trace,
    execute_content,
)

_PARTS = 5  # of a message without buffers: signature, header, parent, metadata and content
MAX_ENDED_CELLS = 100
"""Ended cells whose threads' later output is collected."""
_PROBE_SECONDS = 0.2  # until a silent subscription is probed again
_CONNECTION_SECONDS = 5.0  # until a silent control connection is replaced; doubles each time


class KernelClient:
    """Sends cells to a kernel, on one asyncio loop."""

    def __init__(self, connection: Any) -> None:
        """Create a client, which connects at its first cell."""
        self._channels = ConnectionFileMixin()
        self._channels.context = zmq.asyncio.Context()
        self._channels.load_connection_info(connection)
        if self._channels.ip in ("*", "0.0.0.0"):
            self._channels.ip = "127.0.0.1"
        self._session = Session(
            key=self._channels.session.key,
            signature_scheme=self._channels.session.signature_scheme,
            username=AGENT_USERNAME,
        )
        self._connecting = asyncio.Lock()
        self._shell: zmq.asyncio.Socket | None = None
        self._iopub: zmq.asyncio.Socket | None = None
        self._pending: dict[str, CellRequest] = {}
        self._ended: deque[str] = deque(maxlen=MAX_ENDED_CELLS)
        self._late = OutputCollector()
        self._readers: list[asyncio.Task[None]] = []

    async def run_cell(
        self,
        code: str,
        cancel: Callable[[str], None],
        *,
        timeout: float | None = None,
        silent: bool = False,
        withdraw: Callable[[str], bool] = lambda msg_id: False,
    ) -> CellOutput:
        """Run a cell to its end; ``cancel`` stops a running or queued cell by its id.

        ``withdraw`` keeps a queued cell from starting; it returns False if it runs already.
        """
        limit = None if silent else begin_within.get()

        async def interrupt(request: CellRequest) -> None:
            cancel(request.msg_id)

        while True:
            request = await self.send(code, silent)
            try:
                if (
                    limit is not None
                    and not await request.begins(limit, interrupt)
                    and withdraw(request.msg_id)
                ):
                    return CellOutput(note=NEVER_BEGAN, withdrawn=True)
                timed_out = await request.wait(timeout, interrupt)
            finally:
                self._forget(request)
            if not request.needs_retry:
                late, note = self._take_late_text(), request.note if timed_out else ""
                return replace(request.outputs.result(timed_out), note=note, late_text=late)

    def _forget(self, request: CellRequest) -> None:
        """Stop collecting the outputs of a cell; threads that it started may still print."""
        if self._pending.pop(request.msg_id, None) is not None:
            self._ended.append(request.msg_id)

    def _take_late_text(self) -> str:
        """Return what threads of ended cells have printed since the last call."""
        late, self._late = self._late, OutputCollector()
        return late.text

    def peek(self, max_lines: int = 3) -> str:
        """Return the last lines of the running cell; queued cells have no output."""
        lines = (request.outputs.last_lines(max_lines) for request in list(self._pending.values()))
        return next(filter(None, lines), "")

    async def send(self, code: str, silent: bool) -> CellRequest:
        """Send a cell, which runs after the previous ones."""
        await self._connect()
        content, trace = execute_content(code, silent), dict(cell_trace.get())
        message = self._session.msg("execute_request", content, metadata=trace)
        request = CellRequest(message["header"]["msg_id"], silent)
        self._pending[request.msg_id] = request
        assert self._shell is not None
        await self._shell.send_multipart(self._session.serialize(message))
        return request

    async def _connect(self) -> None:
        async with self._connecting:
            if self._shell is not None:
                return
            # Annotated as plain sockets, but the context creates asyncio ones.
            channels: Any = self._channels
            if self._iopub is None:
                self._iopub = channels.connect_iopub()
                self._readers.append(asyncio.create_task(self._read(self._iopub)))
            seconds = _CONNECTION_SECONDS
            while not await self._is_subscribed(seconds):
                seconds *= 2
            self._shell = shell = channels.connect_shell(identity=self._session.bsession)
            self._readers.append(asyncio.create_task(self._read(shell)))

    async def _is_subscribed(self, seconds: float) -> bool:
        """Send probes on the control channel until IOPub shows one.

        A control connection made while ipykernel starts may never get a reply.
        """
        channels: Any = self._channels
        control = channels.connect_control()
        try:
            async with asyncio.timeout(seconds):
                while not await self._probe(control):
                    pass
        except TimeoutError:
            return False
        finally:
            control.close(linger=0)
        return True

    async def _probe(self, control: zmq.asyncio.Socket) -> bool:
        message = self._session.msg("kernel_info_request", {})
        request = CellRequest(message["header"]["msg_id"])
        request.replied = True
        self._pending[request.msg_id] = request
        await control.send_multipart(self._session.serialize(message))
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await request.done.wait()
        except TimeoutError:
            return False
        finally:
            self._pending.pop(request.msg_id, None)
        return True

    async def _read(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            frames = await socket.recv_multipart()
            try:
                parts: Any = self._session.feed_identities(frames)[1]
                signature, header, parent, _, content = parts[:_PARTS]
                cell = self._session.unpack(parent).get("msg_id", "")
                request, is_late = self._pending.get(cell), cell in self._ended
                if request is None and not is_late:
                    continue
                msg_type = self._session.unpack(header)["msg_type"]
                if request is None and msg_type != "stream":
                    continue
            except (ValueError, LookupError, TypeError):
                continue
            outputs = self._late if request is None else request.outputs
            if len(content) > MAX_OUTPUT_BYTES:
                outputs.add_oversized(msg_type, len(content))
                continue
            # Session.deserialize would spend most of its time parsing the dates in the headers.
            if not compare_digest(signature, self._session.sign(parts[1:_PARTS])):
                continue
            if request is None:
                outputs.add_message(msg_type, self._session.unpack(content))
                continue
            request.handle(msg_type, self._session.unpack(content))
            if request.done.is_set():
                self._forget(request)

    async def close(self) -> None:
        """Disconnect; running cells continue, and their outputs are no longer read."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for socket in (self._shell, self._iopub):
            if socket is not None:
                socket.close(linger=0)
        self._channels.context.term()
