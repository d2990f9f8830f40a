"""The kernel's end of the control channel: remote procedure calls, and events on IOPub.

This module is all that a kernel needs before the first request, which imports the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from oh_jupyter._version import __version__
from oh_jupyter.control_messages import (
    KERNEL_INFO_FIELD,
    REPLY_MESSAGE,
    REQUEST_MESSAGE,
    SILENT_FIELD,
)
from oh_jupyter.errors import GenerationChangedError, OhJupyterError

if TYPE_CHECKING:
    from oh_jupyter.kernel.control.handler import ControlHandler

__all__ = ["ControlChannel"]

INFO_REQUEST, INFO_REPLY = "kernel_info_request", "kernel_info_reply"


class ControlChannel:
    """Registers our request type with a kernel, whose runtime starts with the first request."""

    def __init__(self, kernel: Any, generation: str, start: Callable[[], ControlHandler]) -> None:
        """Register; ``start`` makes the handler, and its OhJupyterError is the reply."""
        self._kernel = kernel
        self._generation = generation
        self._start = start
        self._replaced = kernel.control_handlers[INFO_REQUEST]
        kernel.control_handlers[INFO_REQUEST] = self._send_info
        kernel.control_handlers[REQUEST_MESSAGE] = self._handle
        self._process_any = kernel.process_control
        kernel.process_control = self._process

    def close(self) -> None:
        """Deregister; later requests get an error, so that callers look for a new runtime."""
        handlers = self._kernel.control_handlers
        if handlers.get(REQUEST_MESSAGE) == self._handle:
            handlers[REQUEST_MESSAGE] = partial(_refuse, self._kernel)
        if handlers.get(INFO_REQUEST) == self._send_info:
            handlers[INFO_REQUEST] = self._replaced
        if self._kernel.process_control == self._process:
            self._kernel.process_control = self._process_any

    async def _process(self, frames: Any) -> None:
        """Execute a request of our server without messages on IOPub.

        ipykernel's own processing costs as much as a small Action: it reports the kernel as busy
        and idle to all frontends, which is wrong while a cell runs, and waits until the output of
        that cell is sent.
        """
        session = self._kernel.session
        try:
            idents, parts = session.feed_identities(frames, copy=False)
            if session.unpack(parts[1].bytes)["msg_type"] != REQUEST_MESSAGE:
                raise LookupError(REQUEST_MESSAGE)
            if not session.unpack(parts[3].bytes).get(SILENT_FIELD):
                raise LookupError(SILENT_FIELD)
            message = session.deserialize(parts, copy=False)
        except Exception:  # another type, or an invalid message that ipykernel logs
            await self._process_any(frames)
        else:
            await self._handle(self._kernel.control_stream, idents, message)

    async def _send_info(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Reply like ipykernel, and announce that our requests are supported."""
        ours = {"version": __version__, "generation": self._generation}
        content = {"status": "ok", **self._kernel.kernel_info, KERNEL_INFO_FIELD: ours}
        self._kernel.session.send(stream, INFO_REPLY, content, parent, ident=ident)

    async def _handle(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        try:
            handler = self._start()
        except OhJupyterError as error:
            fields = {"status": "error", "ename": type(error).__name__, "evalue": str(error)}
            content = {"generation": self._generation, "field": "", **fields}
            self._kernel.session.send(stream, REPLY_MESSAGE, content, parent, ident=ident)
            return
        handler.handle(stream, ident, parent)


async def _refuse(kernel: Any, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
    """Reply to a request for a runtime that was unloaded."""
    error = {"ename": GenerationChangedError.__name__, "evalue": "oh_jupyter was unloaded"}
    content = {"status": "error", "generation": "", "field": "", **error}
    kernel.session.send(stream, REPLY_MESSAGE, content, parent, ident=ident)
