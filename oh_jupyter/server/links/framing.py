"""Kernel messages on a websocket, in the two ways that Jupyter servers have of writing them.

Current servers speak the subprotocol ``v1.kernel.websocket.jupyter.org``: the parts of the
message as they are on ZMQ. Others, and servers that were not asked for it, write JSON, or JSON
and buffers behind a table of offsets.
"""

from __future__ import annotations

import json
from typing import Any

from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)

__all__ = ["V1", "decode", "encode"]

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
    """What is sent for a message: bytes as a binary websocket message, a string as text.

    The subprotocol is what the server has agreed to, None for JSON.
    """
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
