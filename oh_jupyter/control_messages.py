"""Names and parts of the messages between server, kernel and frontends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KERNEL_INFO_FIELD = "oh_jupyter"
"""Field of the kernel_info_reply on the control channel that shows that the extension is loaded:
other kernels log an error for each of our requests."""

REQUEST_MESSAGE = "oh_jupyter_request"
"""Type of the only control-channel request; its content names an operation."""

SILENT_FIELD = "oh_jupyter_silent"
"""Metadata of a request whose sender ignores busy and idle status; frontends wait for them."""

RECEIVED_MESSAGE = "oh_jupyter_received"
"""Type of the message that announces that the kernel starts with a request."""

REPLY_MESSAGE = "oh_jupyter_reply"
"""Type of the reply to a request, sent when the operation is done."""

EVENT_MESSAGE = "oh_jupyter_event"
"""Type of the IOPub message that broadcasts an Action or Observation."""

DECISION_MESSAGE = "oh_jupyter_decision"
"""Type of the IOPub message that broadcasts a decision on a waiting Action."""

TURN_MESSAGE = "oh_jupyter_turn"
"""Type of the IOPub message that broadcasts what a guest agent says and does."""

SETTLED_MESSAGE = "oh_jupyter_settled"
"""Type of the IOPub message that announces that the changes of a turn are known."""

CLIENT_HEADER = "X-OH-Client"
"""Header in which a program names itself for the log."""

GUEST_HEADER = "X-OH-Guest"
"""HTTP header that names the conversation of a guest agent's request."""

RUNNING_HINT = (
    "You may wait longer to see additional output by sending empty command '', "
    "send other commands to interact with the current process, "
    'send keys ("C-c", "C-z", "C-d") to interrupt/kill the previous command before sending your '
    "new command, or use the timeout parameter in execute_bash for future commands."
)
"""OpenHands' literal advice on a running command, at the end of three observations. Interfaces
with other tools and parameters replace it by their own."""


VARIABLE_PREFIX = "variable:"
"""Start of an argument that names a variable of the notebook instead of a content."""

KEEP_OUT_TAG = "agent-keep-out"
"""Tag of a notebook's cells that agents may neither edit nor run."""


@dataclass(frozen=True)
class Reply:
    """Result of an operation in the kernel.

    Attributes:
        fields: Content of the message; its status is "ok" unless they say otherwise.
        body: Bytes that travel as a buffer, usually encoded JSON, or None.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None


UNANSWERED = "Nobody looked at it within"
"""Begins the reason of a rejection by the timeout, not by a person."""
