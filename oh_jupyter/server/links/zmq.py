"""A link over ZMQ, to a kernel that runs on this machine.

It has a session and sockets of its own. A client made by ``km.client()`` would share its
ZMQ identity with every other extension that makes one, and could lose wake-ups under
concurrent traffic; streams with identities of their own do neither.
"""

from __future__ import annotations

import uuid
from typing import Any

from jupyter_client.session import Session

from oh_jupyter.errors import KernelDiedError
from oh_jupyter.server.links.kernel_link import LOAD_EXTENSION, Buffers, KernelLink


class ZmqLink(KernelLink):
    """Requests on the sockets of one kernel."""

    def __init__(self, kernel_id: str, kernel_manager: Any, load: str = LOAD_EXTENSION) -> None:
        """Connect to the kernel of a KernelManager."""
        super().__init__(
            kernel_id,
            Session(
                key=kernel_manager.session.key,
                signature_scheme=kernel_manager.session.signature_scheme,
                username="openhands",
            ),
            load,
        )
        self._manager = kernel_manager
        self._streams: dict[str, Any] = {}
        self._port: int | None = None
        self._stream("control")

    def _stream(self, channel: str) -> Any:
        """The stream of a channel; that of the shell is needed for loading only."""
        if channel not in self._streams:
            connect = getattr(self._manager, f"connect_{channel}")
            # Of two connections with one identity, a kernel hears the older, which may be dead.
            stream = self._streams[channel] = connect(identity=uuid.uuid4().hex.encode())
            stream.on_recv(self._receive, copy=False)
            self._port = self._manager.control_port
        return self._streams[channel]

    async def open(self) -> None:
        """Connect anew if the kernel has other ports than before."""
        self._leave_lost_ports()

    def _leave_lost_ports(self) -> None:
        """A kernel that dies at its start is started again with other ports, which nobody tells."""
        port = self._manager.control_port  # 0 while others are chosen
        if self._closed is None and port and port != self._port:
            self._close_streams()
            self._stream("control")
            self.kernel_gone(self._lost())

    def _ping(self, unanswered: bool) -> None:
        self._leave_lost_ports()
        if unanswered and not self.answered:
            self._connect_anew()
        super()._ping(unanswered)

    def _connect_anew(self) -> None:
        """Leave a connection that a kernel may be deaf for since its start.

        Seen once in a thousand starts under load: the kernel answered whoever connected later.
        There ipykernel's main thread touches sockets that other threads read already, which may
        be the cause.
        """
        self._close_stream("control")
        self._stream("control")
        self._pending.send_again()

    def _leave_shell(self) -> None:
        self._close_stream("shell")

    def kernel_gone(self, problem: KernelDiedError) -> None:
        """End all pending requests; the next shell is not connected to before it is needed."""
        super().kernel_gone(problem)
        self._leave_shell()

    def _post(self, channel: str, message: dict[str, Any], buffers: Buffers | None = None) -> None:
        self._session.send(self._stream(channel), message, buffers=buffers)

    def _receive(self, frames: list[Any]) -> None:
        try:
            _, parts = self._session.feed_identities(frames, copy=False)
            message = self._session.deserialize(parts, copy=False)
        except (ValueError, IndexError, TypeError):
            return
        self._pending.take(message)

    async def _is_busy(self) -> bool:
        return getattr(self._manager, "execution_state", "idle") == "busy"

    def close(self, problem: KernelDiedError | None = None) -> None:
        """Disconnect for good."""
        super().close(problem)
        self._close_streams()

    def _close_streams(self) -> None:
        for channel in list(self._streams):
            self._close_stream(channel)

    def _close_stream(self, channel: str) -> None:
        stream = self._streams.pop(channel, None)
        if stream is not None and not stream.closed():
            stream.on_recv(None)
            stream.close(linger=0)
