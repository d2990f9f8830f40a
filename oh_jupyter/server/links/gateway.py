"""A link to a kernel that a gateway runs for the Jupyter server.

``GatewayKernelManager.client()`` sends no credentials, polls at full speed, and ends at the
first message of a channel that it did not open. So this opens its own websocket, configured by
the server's ``GatewayClient``.
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

MAX_CONNECTION_ATTEMPTS = 3  # attempts for a connection that breaks while it is made
EXISTENCE_CHECK_SECONDS = 3.0  # pause between checks that the kernel still exists, while connecting
RECONNECT_SECONDS = 5.0  # time to restore a broken connection before pending requests fail
IDLE_DISCONNECT_SECONDS = 60.0  # gateways do not cull connected kernels
MAX_SENT_BYTES = 10 * 1024 * 1024  # tornado's default, which gateways keep
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024  # largest message that we accept

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
        """Make a link that connects when a request needs it.

        ``died`` is called when the gateway reports that the kernel died; its argument says
        whether the gateway has given it up. It fails the pending requests.
        """
        super().__init__(kernel_id, Session(username="openhands"), load)
        self._manager = kernel_manager
        self._died = died
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._reconnecting: asyncio.Task[None] | None = None
        self._existence_check: asyncio.Task[None] | None = None
        self._generation_check: asyncio.Task[bool] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect if necessary, or raise KernelNotFoundError or GatewayError."""
        if self._closed is not None:
            return
        self._postpone_idle()
        async with self._connecting:
            if self._socket is None:
                self._socket = await self._connect_unless_gone()
                self._reader = asyncio.create_task(self._read(self._socket))

    async def _connect_unless_gone(self) -> WebSocketClientConnection:
        """Connect; a gateway never answers for a kernel that dies at its start."""
        connecting = asyncio.create_task(self._connect())
        try:
            while not (await asyncio.wait({connecting}, timeout=EXISTENCE_CHECK_SECONDS))[0]:
                if await self._is_gone():
                    raise self._not_found()
            return await connecting
        finally:
            connecting.cancel()

    def _not_found(self) -> KernelNotFoundError:
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
        except HTTPClientError as error:
            if error.code == 404:
                raise self._not_found() from None
            if isinstance(error, HTTPTimeoutError):
                raise GatewayTimeoutError(
                    f"The gateway at {client.url} did not connect to kernel {self.kernel_id} in "
                    "time: the kernel hangs, or does not start. The gateway's log may say why"
                ) from error
            raise GatewayError(
                f"The gateway at {client.url} answered {error.code} {error.message} for kernel "
                f"{self.kernel_id}. Check GatewayClient.auth_token and its permissions"
            ) from error
        except (OSError, WebSocketError) as error:
            raise GatewayError(
                f"The gateway at {client.url} cannot be reached: {error}. Check that it runs"
            ) from error

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
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            _log.warning("Kernel %s: unreadable message: %s", self.kernel_id, error)
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
                f"The request has {len(data)} bytes; a gateway accepts {MAX_SENT_BYTES}. Upload "
                "the content as a file, or send it in parts"
            )
        # The reply shows that it arrived, and the reader that the connection is closed.
        with suppress(WebSocketClosedError):
            sent = connection.write_message(data, binary=isinstance(data, bytes))
            sent.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _is_busy(self) -> bool:
        model = await self._manager.refresh_model()
        return bool(model and model.get("execution_state") == "busy")

    def kernel_ended(self, error: KernelDiedError) -> None:
        """Fail all pending requests, and disconnect from the kernel's former ports."""
        super().kernel_ended(error)
        self._disconnect()

    def _ping(self, unanswered: bool) -> None:
        super()._ping(unanswered)
        if unanswered:
            self._existence_check = asyncio.create_task(self._check_existence())
        elif self._generation_check is None or self._generation_check.done():
            self._generation_check = asyncio.create_task(self._is_same_runtime())

    async def _check_existence(self) -> None:
        """Notice a shutdown or culling, which a gateway does not report."""
        if await self._is_gone():
            self.kernel_ended(
                KernelDiedError(
                    f"Kernel {self.kernel_id} was shut down at its gateway before it answered; "
                    "the state of its runtime is lost"
                )
            )

    async def _is_gone(self) -> bool:
        """Return whether the gateway reports that it has no such kernel."""
        try:
            return not await self._manager.refresh_model()
        except (web.HTTPError, OSError) as error:
            _log.debug("Gateway of kernel %s: %s", self.kernel_id, error)
            return False

    def _silent(self, grace_seconds: float) -> None:
        super()._silent(grace_seconds)
        if self._pending.all_done:
            self._disconnect()

    def _disconnected(self, connection: WebSocketClientConnection) -> None:
        """Handle the end of a connection, unless we have closed it."""
        if self._socket is not connection:
            return
        self._socket = None
        self._pending.fail(self._broken(), keep_resendable=True)
        if self._pending:
            self._reconnecting = asyncio.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        """Reconnect and resend pending requests; the kernel recognizes those it has."""
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
        if await self._is_same_runtime():
            self._pending.send_again()

    async def _is_same_runtime(self) -> bool:
        """Return whether the runtime is still the same; fail pending requests otherwise.

        A gateway does not report restarts by others, and the former kernel never replies.
        """
        known = self._generation
        if known is None:
            return True
        try:
            same = await self._ask_generation() == known
        except OhJupyterError:
            return False  # checked again after the next reconnect
        if not same and self._generation == known:
            self.kernel_ended(self._lost())
        return same

    def _broken(self) -> GatewayError:
        return GatewayError(
            f"The connection to kernel {self.kernel_id} was lost: its gateway at "
            f"{GatewayClient.instance().url} closed it before the kernel answered. "
            "The request may have been executed; the next one reconnects"
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

    def close(self, error: KernelDiedError | None = None) -> None:
        """Disconnect finally."""
        super().close(error)
        for scheduled in (self._idle, self._reconnecting):
            if scheduled is not None:
                scheduled.cancel()
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
    """Keep TCP from delaying the acknowledgement by 40 ms.

    Gateways write a reply in several small packets, and send each one only when the previous is
    acknowledged. The system resets the option after use.
    """
    stream = getattr(connection.protocol, "stream", None)
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is not None and stream is not None and not stream.closed():
        stream.socket.setsockopt(socket.IPPROTO_TCP, option, 1)


V1 = "v1.kernel.websocket.jupyter.org"  # subprotocol of a kernel's websocket
_LIFECYCLE_STATES = ("restarting", "dead")
_REPLY_CHANNELS = ("control", "shell")


def encode(
    session: Session,
    channel: str,
    message: dict[str, Any],
    buffers: list[bytes | memoryview[bytes]],
    subprotocol: str | None,
) -> bytes | str:
    """Return a websocket message in the subprotocol, or as JSON if that is None."""
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
    """Parse a message, or return None if it is irrelevant; raise ValueError if it is malformed.

    The websocket carries everything that the kernel broadcasts. Only "restarting" and "dead"
    matter, which the server itself adds. ``replies`` says whether any request is pending.
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
