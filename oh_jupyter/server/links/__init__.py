"""Links to kernels: they carry a request to the runtime in a kernel, and its reply back."""

from oh_jupyter.control_messages import Reply
from oh_jupyter.server.links.gateway import GatewayLink
from oh_jupyter.server.links.kernel_link import (
    KernelLink,
    KernelTransfer,
    is_confined,
)
from oh_jupyter.server.links.zmq import ZmqLink

__all__ = [
    "GatewayLink",
    "KernelLink",
    "KernelTransfer",
    "Reply",
    "ZmqLink",
    "is_confined",
]
