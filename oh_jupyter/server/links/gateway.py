"""A link to a kernel that a gateway runs for the Jupyter server.

``GatewayKernelManager.client()`` sends no credentials, polls at full speed, and ends at the
first message of a channel that it did not open. So this is a websocket of our own, with what
the server's ``GatewayClient`` is configured to send.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.simple_httpclient import HTTPStreamClosedError, HTTPTimeoutError
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketError,
    websocket_connect,
)

from oh_jupyter.errors import (
    GatewayError,
    GatewayTimeoutError,
    KernelDiedError,
    KernelNotFoundError,
    OhJupyterError,
    TransferTooLargeError,
)
from oh_jupyter.server.links.kernel_link import LOAD_EXTENSION, Buffers, KernelLink

MAX_CONNECTION_ATTEMPTS = 3
"""Times that a connection is tried which breaks before it is there."""

EXISTENCE_CHECK_SECONDS = 3.0
"""Seconds of waiting for a connection after which it is looked whether the kernel is there."""

RECONNECT_SECONDS = 5.0
"""Seconds in which a broken connection is made again, before those who wait are told."""

IDLE_DISCONNECT_SECONDS = 60.0
"""Seconds without a request after which the websocket is closed: gateways do not cull kernels
that somebody is connected to."""

MAX_SENT_BYTES = 10 * 1024 * 1024
"""Bytes of a message that a gateway takes; tornado's default, which gateways leave."""

MAX_RECEIVED_BYTES = 1024 * 1024 * 1024
"""Bytes of a message that we take."""

_log = logging.getLogger(__name__)


class GatewayLink(KernelLink):
    """Requests over a websocket to the gateway's ``/api/kernels/{id}/channels``."""

    resends: ClassVar[bool] = True
    causes_of_silence: ClassVar[str] = (
        "it is suspended, or busy in code that holds the GIL, or its gateway hangs"
    )

    def __init__(
        self,
        kernel_id: str,
        kernel_manager: Any,
        load: str = LOAD_EXTENSION,
        died: Callable[[bool], None] = lambda given_up: None,
    ) -> None:
        """Make a link; it connects at the first request, and again when it was disconnected.

        ``died`` is called when the gateway tells that the kernel died, and whether it has given
        it up; it ends the pending requests.
        """
        super().__init__(kernel_id, Session(username="openhands"), load)
        self._manager = kernel_manager
        self._died = died
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._return: asyncio.Task[None] | None = None
        self._look: asyncio.Task[None] | None = None
        self._check: asyncio.Task[bool] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect, if that is needed; KernelNotFoundError, GatewayError."""
        if self._closed is not None:
            return
        self._postpone_idle()
        async with self._connecting:
            if self._socket is None:
                self._socket = await self._connect_unless_gone()
                self._reader = asyncio.create_task(self._read(self._socket))

    async def _connect_unless_gone(self) -> WebSocketClientConnection:
        """Connect; a gateway leaves those waiting who ask for a kernel that dies at its start."""
        connecting = asyncio.create_task(self._connect())
        try:
            while not (await asyncio.wait({connecting}, timeout=EXISTENCE_CHECK_SECONDS))[0]:
                if await self._is_gone():
                    raise self._not_there()
            return await connecting
        finally:
            connecting.cancel()

    def _not_there(self) -> KernelNotFoundError:
        return KernelNotFoundError(
            f"The gateway at {GatewayClient.instance().url} has no kernel {self.kernel_id!r} any "
            "more: it was shut down or culled there, or died too often"
        )

    async def _connect(self) -> WebSocketClientConnection:
        client = GatewayClient.instance()
        address = url_path_join(
            client.ws_url or "", client.kernels_endpoint, quote(self.kernel_id), "channels"
        )
        query = urlencode({"session_id": self._session.session})
        request = HTTPRequest(f"{address}?{query}", **client.load_connection_args())
        try:
            return await _connected(request)
        except HTTPClientError as problem:
            if problem.code == 404:
                raise self._not_there() from None
            if isinstance(problem, HTTPTimeoutError):
                raise GatewayTimeoutError(
                    f"The gateway at {client.url} did not connect to kernel {self.kernel_id} in "
                    "time: the kernel hangs, or does not start. The gateway's log may say why"
                ) from problem
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
            self._died(message["content"]["execution_state"] == "dead")
        else:
            self._pending.take(message)

    def _post(self, channel: str, message: dict[str, Any], buffers: Buffers | None = None) -> None:
        connection = self._socket
        if connection is None:
            return
        data = encode(
            self._session, channel, message, buffers or [], connection.selected_subprotocol
        )
        if len(data) > MAX_SENT_BYTES:
            raise TransferTooLargeError(
                f"A request of {len(data)} bytes is more than the {MAX_SENT_BYTES} that a gateway "
                "takes. Upload the content as a file, or send it in parts"
            )
        # Whether it arrived is seen by the reply, and that the connection is closed by its reader.
        with suppress(WebSocketClosedError):
            sent = connection.write_message(data, binary=isinstance(data, bytes))
            sent.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _is_busy(self) -> bool:
        model = await self._manager.refresh_model()
        return bool(model and model.get("execution_state") == "busy")

    def kernel_gone(self, problem: KernelDiedError) -> None:
        """End all pending requests, and the connection to the ports of the kernel that was."""
        super().kernel_gone(problem)
        self._disconnect()

    def _ping(self, unanswered: bool) -> None:
        super()._ping(unanswered)
        if unanswered:
            self._look = asyncio.create_task(self._look_after_kernel())
        elif self._check is None or self._check.done():
            self._check = asyncio.create_task(self._is_the_same())

    async def _look_after_kernel(self) -> None:
        """A gateway does not tell that it has shut down or culled a kernel."""
        if await self._is_gone():
            self.kernel_gone(
                KernelDiedError(
                    f"Kernel {self.kernel_id} was shut down at its gateway before it answered; "
                    "the state of its runtime is lost"
                )
            )

    async def _is_gone(self) -> bool:
        """Whether the gateway says that it has no such kernel."""
        try:
            return not await self._manager.refresh_model()
        except (web.HTTPError, OSError) as problem:
            _log.debug("Gateway of kernel %s: %s", self.kernel_id, problem)
            return False

    def _silent(self, grace_seconds: float) -> None:
        super()._silent(grace_seconds)
        if self._pending.all_told:
            self._disconnect()

    def _disconnected(self, connection: WebSocketClientConnection) -> None:
        """The other side has ended the connection, unless we have."""
        if self._socket is not connection:
            return
        self._socket = None
        self._pending.fail(self._broken(), keep_resendable=True)
        if self._pending:
            self._return = asyncio.create_task(self._come_back())

    async def _come_back(self) -> None:
        """Connect again for those who wait; the kernel knows what it was asked already."""
        pause_seconds = 0.05
        try:
            async with asyncio.timeout(RECONNECT_SECONDS):
                while True:
                    try:
                        await self.open()
                        break
                    except GatewayError:
                        await asyncio.sleep(pause_seconds)
                        pause_seconds = min(2 * pause_seconds, 1.0)
        except (TimeoutError, KernelNotFoundError):
            self._pending.fail(self._broken())
            return
        if await self._is_the_same():
            self._pending.send_again()

    async def _is_the_same(self) -> bool:
        """Whether the runtime is the one that was asked; if not, nobody waits any more.

        A gateway does not tell of restarts that others have asked for, and what was sent to the
        kernel that was is never answered.
        """
        known = self._generation
        if known is None:
            return True
        try:
            same = await self._ask_generation() == known
        except OhJupyterError:
            return False  # it is found out when the connection is there again
        if not same and self._generation == known:
            self.kernel_gone(self._lost())
        return same

    def _broken(self) -> GatewayError:
        return GatewayError(
            f"The connection to kernel {self.kernel_id} was lost: its gateway at "
            f"{GatewayClient.instance().url} closed it before the kernel answered. "
            "What was asked may have been done; the next request connects again"
        )

    def _disconnect(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _postpone_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_DISCONNECT_SECONDS, self._when_idle)

    def _when_idle(self) -> None:
        if self._pending:
            self._postpone_idle()
        else:
            self._disconnect()

    def close(self, problem: KernelDiedError | None = None) -> None:
        """Disconnect for good."""
        super().close(problem)
        if self._idle is not None:
            self._idle.cancel()
        if self._return is not None:
            self._return.cancel()
        self._disconnect()


async def _connected(request: HTTPRequest) -> WebSocketClientConnection:
    for attempt in range(MAX_CONNECTION_ATTEMPTS):
        try:
            return await websocket_connect(
                request, subprotocols=[V1], max_message_size=MAX_RECEIVED_BYTES
            )
        except HTTPStreamClosedError:
            if attempt == MAX_CONNECTION_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _acknowledge_at_once(connection: WebSocketClientConnection) -> None:
    """Keep TCP from waiting 40 ms with the acknowledgement.

    Gateways write a reply in several small packets and hold the next back until the last
    was acknowledged. The option is good for one time only.
    """
    stream = getattr(connection.protocol, "stream", None)
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is not None and stream is not None and not stream.closed():
        stream.socket.setsockopt(socket.IPPROTO_TCP, option, 1)


V1 = "v1.kernel.websocket.jupyter.org"
"""The subprotocol."""

_LIFECYCLE_STATES = ("restarting", "dead")
_REPLY_CHANNELS = ("control", "shell")


def encode(
    session: Session,
    channel: str,
    message: dict[str, Any],
    buffers: list[bytes | memoryview[bytes]],
    subprotocol: str | None,
) -> bytes | str:
    """A websocket message, binary or text, in the subprotocol, or as JSON if it is None."""
    if subprotocol == V1:
        names = ("header", "parent_header", "metadata", "content")
        packed: bytes = serialize_msg_to_ws_v1(
            [*(session.pack(message[name]) for name in names), *buffers], channel
        )
        return packed
    whole = {**message, "channel": channel, "buffers": buffers}
    if buffers:
        binary: bytes = serialize_binary_message(whole)
        return binary
    return json.dumps(whole, default=json_default)


def decode(
    session: Session, data: bytes | str, subprotocol: str | None, *, replies: bool
) -> dict[str, Any] | None:
    """Read what came, unless it is nothing to us.

    A websocket of a kernel carries all that the kernel says to everybody. Of that only
    "restarting" and "dead" are of interest, which the server itself adds. ``replies`` says
    whether anybody waits for one. A ValueError if it cannot be read.
    """
    if subprotocol == V1 and isinstance(data, bytes):
        message = _read_v1(session, data)
    elif isinstance(data, bytes):
        message = deserialize_binary_message(data) if replies else None
    elif replies or any(f'"{word}"' in data for word in _LIFECYCLE_STATES):
        message = json.loads(data)
    else:
        message = None
    if message is None or message.get("channel") in _REPLY_CHANNELS:
        return message
    state = message["content"].get("execution_state")
    return message if message.get("channel") == "iopub" and state in _LIFECYCLE_STATES else None


def _read_v1(session: Session, data: bytes) -> dict[str, Any] | None:
    channel, parts = deserialize_msg_from_ws_v1(data)
    header = session.unpack(parts[0])
    if channel not in _REPLY_CHANNELS and header["msg_type"] != "status":
        return None
    return {
        "channel": channel,
        "header": header,
        "parent_header": session.unpack(parts[1]),
        "metadata": session.unpack(parts[2]),
        "content": session.unpack(parts[3]),
        "buffers": parts[4:],
    }
