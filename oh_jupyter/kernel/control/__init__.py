"""The kernel's end of the control channel: remote procedure calls, and events on IOPub."""

from oh_jupyter.kernel.control.broadcast import Broadcast
from oh_jupyter.kernel.control.handler import ControlHandler

__all__ = ["Broadcast", "ControlHandler"]
