"""Ways to reach a kernel's runtime."""

from oh_jupyter.server.links.base import KernelLink, Reply
from oh_jupyter.server.links.zmq import ZmqLink

__all__ = ["KernelLink", "Reply", "ZmqLink"]
