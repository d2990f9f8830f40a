"""A link to a kernel that a gateway runs for the Jupyter server.

``GatewayKernelManager.client()`` sends no credentials, polls at full speed, and ends at the
first message of a channel that it did not open. So this is a websocket of our own, with what
the server's ``GatewayClient`` is configured to send.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any
from urllib.parse import quote, urlencode

from jupyter_client.session import Session
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketError, websocket_connect

from oh_jupyter.errors import GatewayError, KernelNotFoundError, TransferTooLargeError
from oh_jupyter.server.links.control import ControlLink
from oh_jupyter.server.links.framing import V1, decode, encode
from oh_jupyter.server.links.loading import LOAD

__all__ = ["GatewayLink"]

IDLE = 60.0
"""Seconds without a request after which the websocket is closed: gateways do not cull kernels
that somebody is connected to."""

SENT_AT_MOST = 10 * 1024 * 1024
"""Bytes of a message that a gateway takes; tornado's default, which gateways leave."""

RECEIVED_AT_MOST = 1024 * 1024 * 1024
"""Bytes of a message that we take."""

_log = logging.getLogger(__name__)


class GatewayLink(ControlLink):
    """Requests over a websocket to the gateway's ``/api/kernels/{id}/channels``."""

    def __init__(self, kernel_id: str, kernel_manager: Any, load: str = LOAD) -> None:
        """Make a link; it connects at the first request, and again when it was disconnected.

        Args:
            kernel_id: Id of the kernel, the same here and at the gateway.
            kernel_manager: Its GatewayKernelManager.
            load: The cell that loads oh_jupyter into the kernel.
        """
        super().__init__(kernel_id, Session(username="openhands"), load)
        self._manager = kernel_manager
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._look: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect, if that is needed.

        Raises:
            KernelNotFoundError: The gateway has no such kernel any more.
            GatewayError: The gateway cannot be reached, or refuses.
        """
        self._postpone_idle()
        async with self._connecting:
            if self._socket is None:
                self._socket = await self._connect()
                self._reader = asyncio.create_task(self._read(self._socket))

    async def _connect(self) -> WebSocketClientConnection:
        client = GatewayClient.instance()
        address = url_path_join(
            client.ws_url or "", client.kernels_endpoint, quote(self.kernel_id), "channels"
        )
        query = urlencode({"session_id": self._session.session})
        request = HTTPRequest(f"{address}?{query}", **client.load_connection_args())
        try:
            return await websocket_connect(
                request, subprotocols=[V1], max_message_size=RECEIVED_AT_MOST
            )
        except HTTPClientError as problem:
            if problem.code == 404:
                raise KernelNotFoundError(
                    f"The gateway at {client.url} has no kernel {self.kernel_id!r} any more: it "
                    "was shut down or culled there"
                ) from None
            raise GatewayError(
                f"The gateway at {client.url} answered {problem.code} {problem.message} for kernel "
                f"{self.kernel_id}. Check GatewayClient.auth_token and what it allows"
            ) from problem
        except (OSError, WebSocketError) as problem:
            raise GatewayError(
                f"The gateway at {client.url} cannot be reached: {problem}. Check that it runs"
            ) from problem

    async def _read(self, connection: WebSocketClientConnection) -> None:
        """Take messages until the connection ends."""
        try:
            while (data := await connection.read_message()) is not None:
                _acknowledge_at_once(connection)
                self._take(connection, data)
        finally:
            self._disconnected(connection)

    def _take(self, connection: WebSocketClientConnection, data: bytes | str) -> None:
        try:
            message = decode(
                self._session,
                data,
                connection.selected_subprotocol,
                replies=bool(self._pending),
            )
        except (ValueError, LookupError, TypeError, AttributeError) as problem:
            _log.warning("Kernel %s: unreadable message: %s", self.kernel_id, problem)
            return
        if message is None:
            return
        if message["channel"] == "iopub":
            self.kernel_gone("died")
        else:
            self._pending.take(message)

    def _post(
        self,
        channel: str,
        message: dict[str, Any],
        buffers: list[bytes | memoryview[bytes]] | None = None,
    ) -> None:
        connection = self._socket
        if connection is None:
            return
        data = encode(
            self._session, channel, message, buffers or [], connection.selected_subprotocol
        )
        if len(data) > SENT_AT_MOST:
            raise TransferTooLargeError(
                f"A request of {len(data)} bytes is more than the {SENT_AT_MOST} that a gateway "
                "takes. Upload the content as a file, or send it in parts"
            )
        sent = connection.write_message(data, binary=isinstance(data, bytes))
        # Whether it arrived is seen by the reply.
        sent.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _is_busy(self) -> bool:
        model = await self._manager.refresh_model()
        return bool(model and model.get("execution_state") == "busy")

    def kernel_gone(self, reason: str) -> None:
        """End all pending requests, see ``KernelLink.kernel_gone``.

        The connection ends, too: the gateway's leads to the ports of the kernel that was.

        Args:
            reason: What happened.
        """
        super().kernel_gone(reason)
        self._disconnect()

    def _ping(self, unanswered: bool) -> None:
        super()._ping(unanswered)
        if unanswered:
            self._look = asyncio.create_task(self._look_after_kernel())

    async def _look_after_kernel(self) -> None:
        """A gateway does not tell that it has shut down or culled a kernel."""
        try:
            model = await self._manager.refresh_model()
        except (web.HTTPError, OSError) as problem:
            _log.debug("Gateway of kernel %s: %s", self.kernel_id, problem)
        else:
            if not model:
                self.kernel_gone("was shut down at its gateway")

    def _silent(self, grace: float) -> None:
        super()._silent(grace)
        self._disconnect()

    def _disconnected(self, connection: WebSocketClientConnection) -> None:
        """The other side has ended the connection, unless we have."""
        if self._socket is connection:
            self._socket = None
            self._pending.fail(
                GatewayError(
                    f"The connection to kernel {self.kernel_id} was lost: its gateway at "
                    f"{GatewayClient.instance().url} closed it before the kernel answered. "
                    "What was asked may have been done; the next request connects again"
                )
            )

    def _disconnect(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _postpone_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self._when_idle)

    def _when_idle(self) -> None:
        if self._pending:
            self._postpone_idle()
        else:
            self._disconnect()

    def close(self) -> None:
        """Disconnect."""
        super().close()
        if self._idle is not None:
            self._idle.cancel()
        self._disconnect()


def _acknowledge_at_once(connection: WebSocketClientConnection) -> None:
    """Keep TCP from waiting 40 ms with the acknowledgement.

    Gateways write a reply in several small packets and hold the next back until the last
    was acknowledged. The option is good for one time only.
    """
    stream = getattr(connection.protocol, "stream", None)
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is not None and stream is not None and not stream.closed():
        stream.socket.setsockopt(socket.IPPROTO_TCP, option, 1)
