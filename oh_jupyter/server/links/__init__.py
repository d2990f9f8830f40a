"""Links to kernels: what carries a request to the runtime in a kernel, and its reply back."""

from oh_jupyter.server.links.gateway import GatewayLink
from oh_jupyter.server.links.kernel_link import KernelLink, Reply, acting
from oh_jupyter.server.links.transfer import Transfer
from oh_jupyter.server.links.zmq import ZmqLink

__all__ = ["GatewayLink", "KernelLink", "Reply", "Transfer", "ZmqLink", "acting"]
