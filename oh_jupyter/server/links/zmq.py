"""A link over ZMQ, to a kernel that runs on this machine.

It has its own session and sockets. A client made by ``km.client()`` would share its ZMQ identity
with every other extension that makes one, and could lose wake-ups under concurrent traffic.
"""

from __future__ import annotations

import uuid
from hmac import compare_digest
from typing import Any

from jupyter_client.session import Session

from oh_jupyter.errors import KernelDiedError
from oh_jupyter.server.links.kernel_link import LOAD_EXTENSION, Buffers, KernelLink

_PARTS = 5  # of a message without buffers: signature, header, parent, metadata and content


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
        """Return the stream of a channel; the shell's is only needed for loading."""
        if channel not in self._streams:
            connect = getattr(self._manager, f"connect_{channel}")
            # A kernel ignores the newer of two connections with the same identity.
            stream = self._streams[channel] = connect(identity=uuid.uuid4().hex.encode())
            stream.on_recv(self._receive, copy=False)
            self._port = self._manager.control_port
        return self._streams[channel]

    async def open(self) -> None:
        """Reconnect if the kernel has changed its ports."""
        self._follow_ports()

    def _follow_ports(self) -> None:
        """Reconnect after a death at the start, when Jupyter silently chooses other ports."""
        port = self._manager.control_port  # 0 while they are chosen
        if self._closed is None and port and port != self._port:
            self._close_streams()
            self._stream("control")
            self.kernel_ended(self._lost())

    def _ping(self, unanswered: bool) -> None:
        self._follow_ports()
        if unanswered and not self.answered:
            self._reconnect()
        super()._ping(unanswered)

    def _reconnect(self) -> None:
        """Replace a connection that the kernel may have ignored since its start.

        Seen once in a thousand starts under load, while later connections worked. Possibly
        because ipykernel's main thread touches sockets that other threads already read.
        """
        self._close_stream("control")
        self._stream("control")
        self._pending.send_again()

    def _close_shell(self) -> None:
        self._close_stream("shell")

    def kernel_ended(self, error: KernelDiedError) -> None:
        """Fail all pending requests; the next shell is connected when it is needed."""
        super().kernel_ended(error)
        self._close_shell()

    def _post(self, channel: str, message: dict[str, Any], buffers: Buffers | None = None) -> None:
        self._session.send(self._stream(channel), message, buffers=buffers)

    def _receive(self, frames: list[Any]) -> None:
        try:
            parts: Any = self._session.feed_identities(frames, copy=False)[1]
            signature, *packed = (part.bytes for part in parts[:_PARTS])
            # Session.deserialize would spend most of its time parsing the dates in the headers.
            if not compare_digest(signature, self._session.sign(packed)):
                return
            header, parent, metadata, content = map(self._session.unpack, packed)
        except (ValueError, IndexError, TypeError):
            return
        self._pending.take(
            {
                "header": header,
                "parent_header": parent,
                "metadata": metadata,
                "content": content,
                "buffers": [part.buffer for part in parts[_PARTS:]],
            }
        )

    async def _is_busy(self) -> bool:
        return getattr(self._manager, "execution_state", "idle") == "busy"

    def close(self, error: KernelDiedError | None = None) -> None:
        """Disconnect finally."""
        super().close(error)
        self._close_streams()

    def _close_streams(self) -> None:
        for channel in list(self._streams):
            self._close_stream(channel)

    def _close_stream(self, channel: str) -> None:
        stream = self._streams.pop(channel, None)
        if stream is not None and not stream.closed():
            stream.on_recv(None)
            stream.close(linger=0)
